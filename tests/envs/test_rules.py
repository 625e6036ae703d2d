from typing import Annotated, Literal, final

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


@final
class Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: Annotated[int, Field(ge=1)] = 20
    min_steps: int = 1
    sizes: tuple[Annotated[int, Field(le=9)], ...] = (1, 2)
    mode: Literal["slow", "fast"] = "slow"
    strict: bool = False

    @model_validator(mode="after")
    def check_order(self) -> "Rules":
        if self.min_steps > self.max_steps:
            raise ValueError(f"`min_steps` is {self.min_steps}, more than {self.max_steps}.")
        return self


def test_no_overrides_leave_the_defaults() -> None:
    assert read_rules(Rules(), {}) == Rules()


def test_overrides_leave_the_rest() -> None:
    defaults = Rules(max_steps=7, strict=True)
    rules = read_rules(defaults, {"sizes": [3, 4], "mode": "fast"})
    assert rules == Rules(max_steps=7, strict=True, sizes=(3, 4), mode="fast")
    assert defaults == Rules(max_steps=7, strict=True)


def test_what_is_dumped_is_read_again() -> None:
    rules = Rules(sizes=(5,), mode="fast")
    assert read_rules(Rules(), rules.model_dump(mode="json")) == rules


def test_an_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match='there is no rule named "max_step"') as caught:
        read_rules(Rules(), {"max_step": 3})
    assert caught.value.hint is not None
    assert caught.value.hint.startswith('did you mean "max_steps"? Known rules: max_steps, ')


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_steps", 0, r"rule `max_steps`: .*greater than or equal to 1, got 0\."),
        ("max_steps", "many", r"rule `max_steps`: .*, got 'many'\."),
        ("sizes", [1, 10], r"rule `sizes\.1`: .*less than or equal to 9, got 10\."),
        ("mode", "huge", r"rule `mode`: .*'slow' or 'fast', got 'huge'\."),
        ("strict", "perhaps", "rule `strict`"),
    ],
)
def test_bad_values_are_refused_by_name(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(Rules(), {name: value})


def test_rules_that_do_not_go_together_say_so_in_their_own_words() -> None:
    with pytest.raises(ConfigError, match=r"^`min_steps` is 9, more than 3\.$"):
        read_rules(Rules(), {"min_steps": 9, "max_steps": 3})


def test_defaults_are_checked_together_with_the_overrides() -> None:
    with pytest.raises(ConfigError, match=r"`min_steps` is 5, more than 4\."):
        read_rules(Rules(min_steps=5), {"max_steps": 4})


def test_the_first_fault_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(Rules(), {"max_steps": 0, "mode": "huge"})
    assert "`max_steps`" in caught.value.message
    assert "`mode`" not in caught.value.message
