"""Tasks that break one law each, for the check to find."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, ParsedReply, StepResult
from gtr_turbo.envs import AbstractTask, Demonstration, make_task
from gtr_turbo.errors import TaskError


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

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        return self.inner.judge_thought(reply)

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


class NamesWhatItForbids(Broken):
    @property
    def admissible_actions(self) -> tuple[str, ...]:
        values = {action for action in super().admissible_actions if action.isdecimal()}
        return (*super().admissible_actions, min({"1", "2", "3"} - values))


class NamesAnActionTwice(Broken):
    @property
    def admissible_actions(self) -> tuple[str, ...]:
        return (*super().admissible_actions, "+")


class NamesActionsBeforeTheStart(Broken):
    @property
    def admissible_actions(self) -> tuple[str, ...]:
        try:
            return super().admissible_actions
        except TaskError:
            return ()


class WritesAnotherAction(Broken):
    def write_action(self, action: str) -> str:
        return super().write_action("+")


class WritesInBadForm(Broken):
    def write_action(self, action: str) -> str:
        return super().write_action(action) + " ok"


class HasNoKind(Broken):
    @property
    def episode_kind(self) -> str:
        return super().episode_kind and " "


class KindOfTheTask(Broken):
    @property
    def episode_kind(self) -> str:
        return f"{super().episode_kind} {self.seed}"


class KindOfTheTurn(Broken):
    @property
    def episode_kind(self) -> str:
        return f"{super().episode_kind} {self.inner.state()['episode']['num_steps']}"


class JudgesInMarks(Broken):
    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        judged: Any = {name: int(good) for name, good in super().judge_thought(reply).items()}
        return judged


class JudgesByStepping(Broken):
    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        before = super().judge_thought(reply)
        if self.inner.state()["episode"]["num_steps"] == 0:
            self.inner.step(reply)
        return before


class JudgesByMood(Broken):
    num_judged = 0

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        self.num_judged += 1
        return {"good": self.num_judged % 2 == 0}


class JudgesOnlyWhatItCanRead(Broken):
    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        if not reply.startswith("{"):
            raise ValueError("this is no reply")
        return super().judge_thought(reply)


class FindsFaultWithItsExpert(Broken):
    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        return {**super().judge_thought(reply), "plan_right": False}


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


class CannotDemonstrate(Broken):
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        raise TaskError("this task has no expert.")


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
