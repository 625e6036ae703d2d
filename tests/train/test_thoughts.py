"""The store of written thoughts: what comes back, what a resume finds, what the limit drops."""

import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.core.turns import ThoughtLabel
from gtr_turbo.errors import CheckpointError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.thoughts import FOLDER, ThoughtStore
from tests.train.written import labels_of, store_at
from tests.world import World, make_policy


@pytest.fixture(scope="module")
def policy(world: World) -> VlmPolicy:
    return make_policy(world.trained)


def same(left: ThoughtLabel, right: ThoughtLabel) -> bool:
    return (
        left.token_ids == right.token_ids
        and left.num_thought_tokens == right.num_thought_tokens
        and left.observation.prompt == right.observation.prompt
        and left.observation.state_key == right.observation.state_key
        and np.array_equal(left.observation.picture, right.observation.picture)
    )


def all_of(store: ThoughtStore) -> list[ThoughtLabel]:
    return [store.get(index) for index in range(len(store))]


def test_what_was_added_comes_back(policy: VlmPolicy, tmp_path: Path) -> None:
    store = store_at(tmp_path / "run")
    first, second = labels_of(policy, 4), labels_of(policy, 3, seed=5)
    store.add(1, first)
    store.add(2, second)
    store.add(3, [])
    assert len(store) == 7
    assert all(map(same, all_of(store), [*first, *second]))


def test_a_resume_finds_its_own_updates_and_deletes_later_ones(
    policy: VlmPolicy, tmp_path: Path
) -> None:
    store = store_at(tmp_path / "run")
    for update in (1, 2, 3):
        store.add(update, labels_of(policy, 2, seed=update))
    kept = all_of(store)[:4]
    again = store_at(tmp_path / "run", resume=True)
    again.restore(2)
    assert all(map(same, all_of(again), kept))
    assert sorted(p.name for p in (tmp_path / "run" / FOLDER).iterdir()) == [
        "update-0001",
        "update-0002",
    ]
    fresh = labels_of(policy, 2, seed=9)
    again.add(3, fresh)
    assert all(map(same, all_of(again), [*kept, *fresh]))


@pytest.mark.parametrize("limit", [None, 1, 1000])
def test_a_run_goes_on_from_before_its_first_thought(tmp_path: Path, limit: int | None) -> None:
    store_at(tmp_path / "run", limit)
    store = store_at(tmp_path / "run", limit, resume=True)
    store.restore(2)
    assert len(store) == 0


def test_a_picture_is_kept_once_per_update(policy: VlmPolicy, tmp_path: Path) -> None:
    store = store_at(tmp_path / "run")
    label = labels_of(policy, 1)[0]
    store.add(1, [label])
    one = (tmp_path / "run" / FOLDER / "update-0001" / "pictures.safetensors").stat().st_size
    store.add(2, [label] * 50)
    many = (tmp_path / "run" / FOLDER / "update-0002" / "pictures.safetensors").stat().st_size
    assert many == one


def test_the_oldest_leave_when_the_newest_are_enough(policy: VlmPolicy, tmp_path: Path) -> None:
    store = store_at(tmp_path / "run", 5)
    for update in (1, 2, 3):
        store.add(update, labels_of(policy, 3, seed=update))
    assert len(store) == 6, "updates leave whole, and never below the limit"
    assert all(map(same, all_of(store)[:3], labels_of(policy, 3, seed=2)))


def test_what_a_checkpoint_can_draw_from_stays_until_the_second_one_after_it(
    policy: VlmPolicy, tmp_path: Path
) -> None:
    folder, store = tmp_path / "run" / FOLDER, store_at(tmp_path / "run", 2)
    store.add(1, labels_of(policy, 3, seed=1))
    store.settle()
    drawn = all_of(store)
    store.add(2, labels_of(policy, 3, seed=2))
    assert len(store) == 3, "the first update is not drawn from any more"
    again = store_at(tmp_path / "run", 2, resume=True)
    again.restore(1)
    assert all(map(same, all_of(again), drawn)), "a resume draws from what it drew from before"
    again.add(2, labels_of(policy, 3, seed=2))
    again.settle()
    again.settle()
    assert sorted(path.name for path in folder.iterdir()) == ["update-0002"]


def test_a_run_of_the_papers_size_fits_into_memory(policy: VlmPolicy, tmp_path: Path) -> None:
    """30,720 thoughts of 200 tokens: as lists and dictionaries of JSON they took 280 MB."""
    label = labels_of(policy, 1)[0]
    prompt, ids = label.observation.prompt, tuple(range(1000, 1200))
    store = store_at(tmp_path / "run")
    tracemalloc.start()
    for update in (1, 2):
        own = replace(label.observation, prompt=f"{prompt} {update}")
        store.add(update, [replace(label, observation=own, token_ids=ids)] * 500)
    per_label = tracemalloc.get_traced_memory()[0] / len(store)
    tracemalloc.stop()
    assert store.get(700).token_ids == ids
    assert store.get(700).observation.prompt == f"{prompt} 2"
    assert per_label * 30_720 < 60e6


def test_a_damaged_update_is_not_guessed(policy: VlmPolicy, tmp_path: Path) -> None:
    store = store_at(tmp_path / "run")
    store.add(1, labels_of(policy, 2))
    labels = tmp_path / "run" / FOLDER / "update-0001" / "labels.json"
    labels.write_text(labels.read_text().replace("1", "2", 1))
    with pytest.raises(CheckpointError, match="cannot be used"):
        store_at(tmp_path / "run", resume=True).restore(1)
    shutil.rmtree(labels.parent)
    again = store_at(tmp_path / "run", resume=True)
    again.restore(1)
    assert len(again) == 0
