"""Surveys of data roots: what lies there is told by its names, within bounds, and nothing outside of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.data_sets import DataSet, Split
from trainer.data.images import EXTENSIONS
from worker import surveying
from worker.surveying import survey


def images(folder: Path, count: int, *, suffix: str = ".jpg") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number}{suffix}").touch()


def only(found: list[DataSet]) -> DataSet:
    (data_set,) = found
    return data_set


def coco(folder: Path) -> None:
    (folder / "annotations").mkdir(parents=True)
    for split, names in (("train", ["a.jpg", "b.jpg"]), ("val", ["c.jpg"])):
        content = {
            "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
            "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
            "annotations": [{"image_id": 0, "category_id": 7}, {"image_id": 0, "category_id": 7}],
        }
        (folder / "annotations" / f"instances_{split}2017.json").write_text(json.dumps(content))


def test_names_that_count_as_images_are_those_of_the_trainer() -> None:
    assert surveying.IMAGES == EXTENSIONS


def test_an_image_folder_is_counted_by_class_with_a_few_samples_of_each(tmp_path: Path) -> None:
    images(tmp_path / "cat", 3)
    images(tmp_path / "dog" / "deeper", 1)
    images(tmp_path / "dog", 1, suffix=".PNG")
    images(tmp_path / ".hidden", 5)
    (tmp_path / "cat" / "notes.txt").touch()
    found = only(survey("pets", tmp_path))
    assert (found.name, found.kind, found.complete, found.note) == ("pets", "image_folder", True, None)
    assert found.splits == {"all": Split(samples=5, classes={"cat": 3, "dog": 2})}
    assert [(each.name, each.classes) for each in found.preview] == [
        ("cat/0.jpg", ("cat",)),
        ("cat/1.jpg", ("cat",)),
        ("dog/0.PNG", ("dog",)),
        ("dog/deeper/0.jpg", ("dog",)),
    ]


def test_an_image_folder_with_a_split_of_its_own_is_counted_by_set(tmp_path: Path) -> None:
    for split, count in (("train", 4), ("val", 2)):
        for name in ("cat", "dog"):
            images(tmp_path / split / name, count)
    found = only(survey("pets", tmp_path))
    assert {split: each.samples for split, each in found.splits.items()} == {"train": 8, "val": 4}


def test_a_root_of_data_sets_tells_of_each_by_the_name_of_its_folder(tmp_path: Path) -> None:
    images(tmp_path / "june" / "cat", 1)
    images(tmp_path / "june" / "dog", 1)
    coco(tmp_path / "street")
    (tmp_path / "empty").mkdir()
    assert [(each.name, each.kind) for each in survey("data", tmp_path)] == [
        ("data:june", "image_folder"),
        ("data:street", "coco"),
    ]


def test_coco_is_counted_by_its_lists(tmp_path: Path) -> None:
    coco(tmp_path)
    found = only(survey("street", tmp_path))
    assert found.splits["train"] == Split(samples=2, classes={"cat": 2, "dog": 0})
    assert found.splits["val"].samples == 1
    assert [(each.name, each.classes) for each in found.preview] == [
        ("a.jpg", ("cat",)),
        ("b.jpg", ()),
        ("c.jpg", ("cat",)),
    ]


@pytest.mark.parametrize("content", ["", "[]", '{"images": 3}', "[" * 100_000, '{"categories": [{}], "images": []}'])
def test_a_list_that_is_none_is_told_of_and_ends_nothing(tmp_path: Path, content: str) -> None:
    coco(tmp_path)
    (tmp_path / "annotations" / "instances_train2017.json").write_text(content)
    found = only(survey("street", tmp_path))
    assert not found.complete
    assert found.note is not None


def test_what_is_larger_than_may_be_looked_at_is_counted_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "MOST_FILES", 5)
    images(tmp_path / "cat", 4)
    images(tmp_path / "dog", 4)
    found = only(survey("pets", tmp_path))
    assert (found.complete, found.splits["all"].samples) == (False, 5)


def test_links_lead_a_survey_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    images(root / "cat", 1)
    images(root / "dog", 1)
    images(tmp_path / "outside" / "secret", 3)
    (root / "out").symlink_to(tmp_path / "outside" / "secret")
    (root / "cat" / "out").symlink_to(tmp_path / "outside")
    (root / "cat" / "loop").symlink_to(root)
    assert only(survey("pets", root)).splits["all"].classes == {"cat": 1, "dog": 1}


def test_a_list_that_is_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    coco(tmp_path / "root")
    path = tmp_path / "root" / "annotations" / "instances_train2017.json"
    path.rename(tmp_path / "outside.json")
    kinds: list[Callable[[Path], object]] = [os.mkfifo, lambda path: path.symlink_to(tmp_path / "outside.json")]
    for make in kinds:
        make(path)
        found = only(survey("street", tmp_path / "root"))
        path.unlink()
        assert not found.complete
        assert "cannot be read" in str(found.note)
        assert found.preview == ()


def test_names_that_are_no_text_can_be_published_all_the_same(tmp_path: Path) -> None:
    images(tmp_path / "cat", 1)
    images(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xffg")), 1)
    found = only(survey("pets", tmp_path))
    assert set(found.splits["all"].classes) == {"cat", "d?g"}
    assert found.model_dump_json()


def test_a_root_that_is_not_there_or_holds_nothing_known_says_so(tmp_path: Path) -> None:
    assert "cannot be listed" in str(only(survey("gone", tmp_path / "gone")).note)
    assert "known way" in str(only(survey("empty", tmp_path)).note)
