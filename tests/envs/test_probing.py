from dataclasses import replace

import numpy as np
import pytest

from gtr_turbo.core.turns import Observation
from gtr_turbo.envs.probing import (
    Subject,
    global_generators_untouched,
    play,
    refuses,
    replay,
    require_same,
    require_same_play,
)
from gtr_turbo.errors import TaskError
from tests.conformance.broken import Broken, CannotDemonstrate, MistakesFromNowhere

SOUND = Subject(make=Broken, with_expert=True)


def test_the_usual_play_is_the_experts() -> None:
    results = play(SOUND.started(1), SOUND.usual_replies(1))
    assert (len(results), results[-1].success) == (4, True)
    assert [result.success for result in replay(SOUND, 1, mistake=False)] == [False] * 3 + [True]
    assert not any(result.success for result in replay(SOUND, 1, mistake=True))


def test_without_an_expert_it_is_play_at_random() -> None:
    subject = Subject(make=CannotDemonstrate, with_expert=False)
    replies = subject.usual_replies(2)
    assert replies == subject.usual_replies(2)
    results = play(subject.started(2), replies)
    assert len(results) == len(replies)
    assert all(result.legal for result in results)
    assert results[-1].terminated or results[-1].truncated


def test_a_trace_of_another_generator_is_refused() -> None:
    with pytest.raises(TaskError, match="another generator"):
        replay(Subject(make=MistakesFromNowhere, with_expert=True), 0, mistake=True)


def test_a_copy_stands_where_its_task_stands() -> None:
    task = SOUND.started(3)
    play(task, SOUND.usual_replies(3)[:2])
    copy = SOUND.copied(3, task.state())
    require_same(task.observation, copy.observation, "a copy")
    require_same_play(task, copy, SOUND.usual_replies(3)[2:])
    assert task.observation.state_key == copy.observation.state_key


@pytest.mark.parametrize("part", ["prompt", "state_key", "picture"])
def test_differences_are_named(part: str) -> None:
    shown = SOUND.started(0).observation
    other: dict[str, Observation] = {
        "prompt": replace(shown, prompt="x"),
        "state_key": replace(shown, state_key="x"),
        "picture": replace(shown, picture=255 - shown.picture),
    }
    with pytest.raises(TaskError, match=rf"here: the {part.replace('_', ' ')}s differ"):
        require_same(shown, other[part], "here")


def test_only_task_errors_count_as_refusals() -> None:
    fresh = Broken(0)
    assert refuses(lambda: fresh.observation)
    assert not refuses(lambda: None)
    with pytest.raises(KeyError):
        refuses(lambda: {}["x"])


def test_global_generators_are_watched() -> None:
    with global_generators_untouched():
        np.random.default_rng(0).random()
    with (
        pytest.raises(TaskError, match="a global random generator was used"),
        global_generators_untouched(),
    ):
        np.random.random()  # noqa: NPY002 - the fault to be caught
