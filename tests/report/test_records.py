import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gtr_turbo.errors import CheckpointError
from gtr_turbo.report.records import (
    picture_url,
    read_lines,
    read_run,
    record_evaluation,
    save_episodes,
)
from tests.report.fake_run import NUM_UPDATES, evaluation, make_run, play_episodes


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    record = read_run(run)
    assert [line["update"] for line in record.metrics] == list(range(1, NUM_UPDATES + 1))
    assert sorted(record.episodes) == [1, 10, 20, 30]
    episodes, pictures = play_episodes(10, 3)
    assert record.episodes[10] == episodes
    name = episodes[0]["turns"][0]["picture"]
    with Image.open(run / "episodes" / name) as picture:
        np.testing.assert_array_equal(np.asarray(picture), pictures[name])
    assert not [path for path in run.rglob("*") if path.name.startswith(".")]


def test_a_run_that_has_only_begun_is_read(tmp_path: Path) -> None:
    record = read_run(tmp_path)
    assert record.metrics == []
    assert record.summary is None
    assert record.episodes == {}


def test_an_evaluation_that_is_redone_is_replaced(tmp_path: Path) -> None:
    record_evaluation(tmp_path, 5, "agent", evaluation(0.25))
    record_evaluation(tmp_path, 5, "teacher", evaluation(0.5))
    record_evaluation(tmp_path, 5, "agent", evaluation(0.75))
    lines = read_lines(tmp_path / "evaluations.jsonl")
    assert [(line["who"], line["success_rate"]) for line in lines] == [
        ("teacher", 0.5),
        ("agent", 0.75),
    ]


@pytest.mark.parametrize(
    "name", ["../x.png", "/x.png", "a/b.png", ".x.png", "x.jpg", "x.png\n", ""]
)
def test_pictures_have_plain_names(tmp_path: Path, name: str) -> None:
    episode = {"turns": [{"picture": name}]}
    with pytest.raises(CheckpointError, match="pictures that cannot be written"):
        save_episodes(tmp_path, 1, [episode], {name: np.zeros((2, 2, 3), np.uint8)})
    assert not list(tmp_path.rglob("*.png"))
    assert picture_url(tmp_path, name) is None


def test_a_picture_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"t7\.png"):
        save_episodes(tmp_path, 1, [{"turns": [{"picture": "t7.png"}]}], {})


def test_unreadable_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = json.dumps({"a": "line\u2028separator"}, ensure_ascii=False)
    path.write_text(f'{good}\n[1]\n{{"torn', encoding="utf-8")
    assert read_lines(path) == [{"a": "line\u2028separator"}]
    path.write_text("[" * 100_000)
    assert read_lines(path) == []


def test_only_real_pictures_inside_the_run_are_embedded(tmp_path: Path) -> None:
    folder = tmp_path / "episodes"
    folder.mkdir()
    (folder / "text.png").write_text("<svg onload='alert(1)'>")
    (folder / "huge.png").write_bytes(bytes(1_000_001))
    Image.new("RGB", (2, 2)).save(tmp_path / "outside.png")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    Image.new("RGB", (2, 2)).save(folder / "good.png")
    whole = (folder / "good.png").read_bytes()
    (folder / "torn.png").write_bytes(whole[:-20])
    names = ("text.png", "huge.png", "link.png", "torn.png", "missing.png", None, 7)
    assert [picture_url(tmp_path, name) for name in names] == [None] * len(names)
    url = picture_url(tmp_path, "good.png")
    assert url is not None
    assert url.startswith("data:image/png;base64,iVBOR")
