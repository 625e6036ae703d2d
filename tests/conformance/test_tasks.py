"""Every task under several rules keeps every law; a task that breaks a law is caught by name."""

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gtr_turbo.core.turns import JsonState, Observation, ParsedReply, StepResult
from gtr_turbo.envs import TASKS, AbstractTask, Demonstration, check_task, make_task
from gtr_turbo.envs.check import LAWS
from gtr_turbo.errors import TaskError

RULES: dict[str, dict[str, Any]] = {
    "paper": {},
    "tiny": {"picture": "compact", "prompt": "compact"},
    "training": {"end_at_first_penalty": True, "only_solvable": True},
    "lineage": {
        "illegal_action": "blank_appended",
        "length_limit": "tokens",
        "unreadable_reply": "random_action",
    },
    "loose": {"must_use_all_cards": False, "ranks": [2, 3, 4, 9], "deal": "deck"},
    "faces": {"face_cards_as_ten": False, "deal": "with_replacement"},
    "short": {"max_steps": 3},
    "other": {"target": 10, "reward_success": 1.0, "reward_illegal": 0.0},
}


@pytest.mark.parametrize("rules", list(RULES))
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_keeps_every_law(name: str, rules: str) -> None:
    report = check_task(lambda seed: make_task(name, RULES[rules], seed))
    assert report.laws == tuple(LAWS)
    assert report.task_id == f"{name}-v0"


class Broken(AbstractTask):
    """A sound EZPoints seat; each subclass below breaks one law."""

    rules: dict[str, Any] = {"picture": "compact"}  # noqa: RUF012

    def __init__(self, seed: int) -> None:
        self.inner = make_task("ezpoints", self.rules, seed)
        self.seed = seed

    @property
    def task_id(self) -> str:
        return self.inner.task_id

    @property
    def observation(self) -> Observation:
        return self.seen(self.inner.observation)

    @property
    def episode_seed(self) -> int:
        return self.inner.episode_seed

    @property
    def solvable(self) -> bool:
        return self.inner.solvable

    @property
    def episode_kind(self) -> str:
        return self.inner.episode_kind

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        return self.inner.admissible_actions

    def write_action(self, action: str) -> str:
        return self.inner.write_action(action)

    def reset(self, seed: int | None = None) -> Observation:
        return self.seen(self.inner.reset(seed))

    def step(self, reply: str) -> StepResult:
        result = self.inner.step(reply)
        return replace(result, observation=self.seen(result.observation))

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        return [
            Demonstration(observation=self.seen(turn.observation), reply=turn.reply)
            for turn in self.inner.demonstrate(generator, mistake=mistake)
        ]

    def state(self) -> JsonState:
        return self.inner.state()

    def restore(self, state: JsonState) -> None:
        self.inner.restore(state)

    def seen(self, observation: Observation) -> Observation:
        return observation


class IgnoresItsSeed(Broken):
    made = 0

    def __init__(self, seed: int) -> None:
        IgnoresItsSeed.made += 1
        super().__init__(IgnoresItsSeed.made)


class MixesItsSeedIn(Broken):
    def reset(self, seed: int | None = None) -> Observation:
        return super().reset(None if seed is None else seed + self.seed)


class RestartsItsStream(Broken):
    def reset(self, seed: int | None = None) -> Observation:
        if seed is not None:
            self.inner = make_task("ezpoints", self.rules, seed)
        return super().reset(seed)


class ForgetsItsGenerators(Broken):
    def restore(self, state: JsonState) -> None:
        super().restore(state | {"seeds": self.inner.state()["seeds"]})


class RestoresTheStart(Broken):
    def restore(self, state: JsonState) -> None:
        super().restore(state | {"episode": state["episode"] | {"formula": []}})


class SnapshotsAreNoJson(Broken):
    def state(self) -> JsonState:
        return super().state() | {"generator": np.random.default_rng(0)}


class PaintsInSixteenBits(Broken):
    def seen(self, observation: Observation) -> Observation:
        wrong = replace(observation)
        # Past the constructor, whose type check is on in this suite only.
        object.__setattr__(wrong, "picture", observation.picture.astype(np.uint16))
        return wrong


class PaintsInGrey(Broken):
    def seen(self, observation: Observation) -> Observation:
        return replace(observation, picture=observation.picture[..., :1])


class PaintsInTwoSizes(Broken):
    def seen(self, observation: Observation) -> Observation:
        return replace(observation, picture=observation.picture[len(observation.prompt) % 2 :])


class ChangesWhenLookedAt(Broken):
    num_looks = 0

    @property
    def observation(self) -> Observation:
        self.num_looks += 1
        picture = self.inner.observation.picture
        return replace(
            self.inner.observation, picture=255 - picture if self.num_looks > 1 else picture
        )


class SaysNothing(Broken):
    def seen(self, observation: Observation) -> Observation:
        return replace(observation, prompt=" ")


class HasNoKeys(Broken):
    def seen(self, observation: Observation) -> Observation:
        return replace(observation, state_key="")


class SharesAKey(Broken):
    def seen(self, observation: Observation) -> Observation:
        return replace(observation, state_key="the same")


class RaisesOnGarbage(Broken):
    def step(self, reply: str) -> StepResult:
        if reply.startswith("[["):
            raise RecursionError("maximum recursion depth exceeded")
        return super().step(reply)


class GivesNoReason(Broken):
    def step(self, reply: str) -> StepResult:
        result = super().step(reply)
        parsed = ParsedReply(
            action=result.parsed.action, valid_format=result.parsed.valid_format, reason=None
        )
        return replace(result, parsed=parsed)


class CallsGarbageLegal(Broken):
    def step(self, reply: str) -> StepResult:
        return replace(super().step(reply), legal=True)


class EndsBothWays(Broken):
    def step(self, reply: str) -> StepResult:
        result = super().step(reply)
        return replace(result, truncated=result.terminated or result.truncated)


class NeverEnds(Broken):
    rules = {"picture": "compact", "max_steps": 10**9}  # noqa: RUF012


class WinsAndGoesOn(Broken):
    def step(self, reply: str) -> StepResult:
        result = super().step(reply)
        return replace(result, truncated=result.terminated or result.truncated, terminated=False)


class PlaysOnAfterTheEnd(Broken):
    last: StepResult | None = None

    def step(self, reply: str) -> StepResult:
        if self.last is not None and (self.last.terminated or self.last.truncated):
            return self.last
        self.last = super().step(reply)
        return self.last

    def reset(self, seed: int | None = None) -> Observation:
        self.last = None
        return super().reset(seed)


class PlaysBeforeTheStart(Broken):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        fresh = self.inner.state()
        self.inner.reset()
        self.inner.restore(self.inner.state() | {"seeds": fresh["seeds"]})


class CannotWin(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        return super().demonstrate(generator, mistake=True)


class HasNoExpert(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        return []


class StopsHalfWay(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        state = self.state()
        trace = super().demonstrate(generator, mistake=mistake)
        self.restore(state)
        return trace


class MakesNoMistake(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        return super().demonstrate(generator)


class StumblesInForm(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        trace = super().demonstrate(generator, mistake=mistake)
        if not mistake:
            return trace
        return [Demonstration(observation=t.observation, reply=t.reply + " ok") for t in trace]


class MistakesFromNowhere(Broken):
    made = 0

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        MistakesFromNowhere.made += 1
        own = np.random.default_rng(MistakesFromNowhere.made)
        return super().demonstrate(own, mistake=mistake)


class ShowsOneThingAndPlaysAnother(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        trace = super().demonstrate(generator, mistake=mistake)
        return [Demonstration(observation=trace[0].observation, reply=t.reply) for t in trace]


class PaysNothing(Broken):
    def step(self, reply: str) -> StepResult:
        return replace(super().step(reply), rewards={"bonus": 1.0})


class PaysInfinity(Broken):
    def step(self, reply: str) -> StepResult:
        return replace(super().step(reply), rewards={"task": float("nan")})


class DrawsFromNumpy(Broken):
    def reset(self, seed: int | None = None) -> Observation:
        np.random.random()  # noqa: NPY002 - the fault to be caught
        return super().reset(seed)


class DealsFromPython(Broken):
    def reset(self, seed: int | None = None) -> Observation:
        return super().reset(random.randrange(2**40))


def test_the_sound_wrapper_keeps_every_law() -> None:
    assert check_task(Broken).num_solvable == 6


BREAKERS: list[tuple[Callable[[int], AbstractTask], str, str]] = [
    # (task, start of the names of the laws that may catch it, part of the message)
    (IgnoresItsSeed, "the same task seed", "of two equal tasks"),
    (MixesItsSeedIn, "an episode seed alone", "differ"),
    (RestartsItsStream, "an episode seed alone", "after a seeded one"),
    (ForgetsItsGenerators, "a snapshot continues", "another state"),
    (RestoresTheStart, "a snapshot continues", "another state"),
    (SnapshotsAreNoJson, "a snapshot continues", "TypeError"),
    (PaintsInSixteenBits, "pictures are uint8", "uint16"),
    (PaintsInGrey, "pictures are uint8", r"\(28, 56, 1\)"),
    (PaintsInTwoSizes, "pictures are uint8", "pictures change"),
    (ChangesWhenLookedAt, "equal state keys", "asked for twice: the pictures differ"),
    (SharesAKey, "equal state keys", 'the state "the same"'),
    (SaysNothing, "prompts and state keys", "a prompt is empty"),
    (HasNoKeys, "prompts and state keys|equal state keys", "empty|differ"),
    (RaisesOnGarbage, "bad replies|the same task seed", "RecursionError"),
    (GivesNoReason, "bad replies", "lacks its reason"),
    (CallsGarbageLegal, "bad replies", "yet a legal one"),
    (EndsBothWays, "episodes end", "both terminated and truncated"),
    (NeverEnds, "episodes end", "no end after"),
    (WinsAndGoesOn, "episodes end", "solved, but not terminated"),
    (PlaysOnAfterTheEnd, "no step outside", "after the end"),
    (PlaysBeforeTheStart, "no step outside", "before the first reset"),
    (CannotWin, "the expert solves", "solvable is True, solved is False"),
    (HasNoExpert, "", "the expert's trace is empty"),
    (StopsHalfWay, "the expert solves", "does not play to the end"),
    (MakesNoMistake, "mistakes are", "a mistake solves"),
    (StumblesInForm, "mistakes are", "not of valid format"),
    (MistakesFromNowhere, "mistakes are", "another generator"),
    (ShowsOneThingAndPlaysAnother, "the expert solves", "the trace's observation"),
    (PaysNothing, "rewards are finite", '"task" is missing'),
    (PaysInfinity, "", "nan"),
    (DrawsFromNumpy, "the same task seed", "a global random generator was used"),
    (DealsFromPython, "the same task seed", "of two equal tasks"),
]


@pytest.mark.parametrize(("make", "law", "detail"), BREAKERS)
def test_each_broken_law_is_named(
    make: Callable[[int], AbstractTask], law: str, detail: str
) -> None:
    with pytest.raises(TaskError, match=rf'the law "({law}).*(?s:.*)({detail})'):
        check_task(make)


IN_A_PLAIN_INTERPRETER = """
import random
from gtr_turbo.envs import check_task, make_task

def make(seed):
    random.random()
    return make_task("ezpoints", {}, seed)

check_task(make)
"""


def test_a_look_at_pythons_generator_suffices_without_the_type_checks() -> None:
    run = [sys.executable, "-c", IN_A_PLAIN_INTERPRETER]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "a global random generator was used" in done.stderr
    run[-1] = IN_A_PLAIN_INTERPRETER.replace("random.random()", "pass")
    assert subprocess.run(run, check=False).returncode == 0


def test_every_law_is_broken_by_somebody() -> None:
    named = [law for _, law, _ in BREAKERS if law]
    for law in LAWS:
        assert any(law.startswith(part) for row in named for part in row.split("|")), law
