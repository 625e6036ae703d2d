import pytest

from gtr_turbo.arms import ARMS, ROOT, make_arm
from gtr_turbo.core.config import Config, flatten, parse_config
from gtr_turbo.core.overrides import put
from gtr_turbo.errors import UnknownNameError
from gtr_turbo.presets import PRESETS, make_preset
from tests.console import TINY, Console
from tests.console import console as console

TINY_PRESETS = [name for name in PRESETS if name.endswith("-tiny")]


def build(preset: str, arm: str) -> Config:
    values = make_preset(preset).model_dump(mode="json")
    for key, value in ARMS[arm].overrides.items():
        put(values, key, value)
    return parse_config(values)


def changes(before: Config, after: Config) -> dict[str, object]:
    old, new = flatten(before.model_dump(mode="json")), flatten(after.model_dump(mode="json"))
    return {key: new[key] for key in new if new[key] != old[key]}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_sets_what_it_says_and_passes_all_checks(preset: str, arm: str) -> None:
    own = ARMS[arm].overrides
    config = build(preset, arm)
    assert own.items() <= flatten(config.model_dump(mode="json")).items()
    assert changes(make_preset(preset), config).keys() <= own.keys()


@pytest.mark.parametrize("preset", TINY_PRESETS)
@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm != ROOT])
def test_an_arm_differs_from_its_neighbour_by_one_field(preset: str, arm: str) -> None:
    neighbour = ARMS[arm].neighbour
    assert neighbour is not None
    found = changes(build(preset, neighbour), build(preset, arm))
    is_the_presets_own = arm == "into-reward"
    assert len(found) == (0 if is_the_presets_own else 1)
    assert found.items() <= ARMS[arm].overrides.items()


def test_neighbours_lead_back_to_the_presets_as_they_are() -> None:
    assert ARMS[ROOT].overrides == {}
    for name in ARMS:
        arm, steps = ARMS[name], 0
        while arm.neighbour is not None:
            arm, steps = ARMS[arm.neighbour], steps + 1
            assert steps < len(ARMS)
        assert arm is ARMS[ROOT]


def test_each_arm_is_explained_in_a_line() -> None:
    texts = [arm.text for arm in ARMS.values()]
    assert all(text.endswith(".") and "\n" not in text and len(text) < 80 for text in texts)
    assert len(set(texts)) == len(texts)


def test_no_two_arms_are_the_same() -> None:
    found = [tuple(sorted(arm.overrides.items())) for arm in ARMS.values()]
    assert len(set(found)) == len(found)


def test_an_unknown_arm_gets_its_nearest_neighbour() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_arm("gtr-turbo-kll")
    assert str(caught.value.hint).startswith('did you mean "gtr-turbo-kl"? Known arms: ')


def test_an_arm_stands_between_preset_and_options(console: Console) -> None:
    assert console.config(*TINY, "--arm", "rft") == build("ezpoints-tiny", "rft")
    other = console.config(*TINY, "--arm", "rft", "--ppo.objective", "ppo")
    assert other == build("ezpoints-tiny", "rl4vlm")
    assert 'no arm named "rtf"' in console.refused("train", *TINY, "--arm", "rtf", "--dry-run")
