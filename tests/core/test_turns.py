from hashlib import sha256

import numpy as np
import pytest

from gtr_turbo.core.turns import (
    Episode,
    EpisodeEnd,
    Observation,
    ParsedReply,
    SamplingSettings,
    Turn,
    picture_hash,
)
from tests.rows import prompt, reply

PICTURE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def turn(reward: float, *, success: bool = False) -> Turn:
    return Turn(
        observation=Observation(picture=PICTURE, prompt="go", state_key="k"),
        prompt=prompt((1, 2)),
        reply=reply((3, 4), 1),
        sampling=SamplingSettings(temperature=1.0, max_new_tokens=4, suppressed=()),
        parsed=ParsedReply(action="1", valid_format=True, reason=None),
        legal=True,
        random_action=False,
        rewards={"task": reward, "other": 100.0},
        terminated=success,
        truncated=False,
        success=success,
        policy_version="v",
    )


def episode(*turns: Turn, prior_return: float = 0.0) -> Episode:
    return Episode(
        turns=turns,
        task_id="t",
        environment=0,
        seed=0,
        end=EpisodeEnd.UPDATE_BOUNDARY,
        next_prompt=None,
        prior_return=prior_return,
    )


def test_a_pictures_hash_is_that_of_its_shape_and_pixels() -> None:
    assert picture_hash(PICTURE) == sha256(b"(2, 4, 3)" + bytes(range(24))).hexdigest()
    assert picture_hash(PICTURE) != picture_hash(PICTURE.reshape(4, 2, 3))
    changed = PICTURE.copy()
    changed[1, 3, 2] += 1
    assert picture_hash(changed) != picture_hash(PICTURE)


def test_the_hash_does_not_depend_on_memory_order() -> None:
    assert picture_hash(np.asfortranarray(PICTURE)) == picture_hash(PICTURE)


def test_an_episodes_return_is_the_tasks_alone_and_goes_on_across_updates() -> None:
    assert episode(turn(-1.0), turn(10.0)).task_return == 9.0
    assert episode(turn(-1.0), prior_return=-2.0).task_return == -3.0


@pytest.mark.parametrize("successes", [(), (False,), (False, True), (True, False)])
def test_an_episode_is_a_success_when_a_turn_is(successes: tuple[bool, ...]) -> None:
    found = episode(*(turn(0.0, success=success) for success in successes))
    assert found.success is any(successes)


def test_ends_are_written_as_words() -> None:
    ends = ["terminated", "truncated", "update_boundary", "fault"]
    assert [str(end) for end in EpisodeEnd] == ends
