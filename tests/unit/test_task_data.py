"""A run's data sets: with a sample or more each, and with names that can be told."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.errors import ConfigError, DataError
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import TaskData, open_data

ALONE = ProcessGroup.alone(torch.device("cpu"))


def recipe(train: Any, val: Any) -> Any:
    """A recipe of another package, with these data sets."""
    return SimpleNamespace(name="given", build_data=lambda _group: TaskData(train, val, samples=""))


@pytest.mark.parametrize(("train", "val", "what"), [([], [1], "training"), ([1], [], "validation")])
def test_a_set_without_a_sample_is_refused(train: list[int], val: list[int], what: str) -> None:
    with pytest.raises(DataError, match=f"the {what} set has no sample"):
        open_data(recipe(train, val), ALONE)


def test_a_set_without_a_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="recipe given: its training set, a list_iterator, has no length"):
        open_data(recipe(iter([1]), [1]), ALONE)


def test_classes_of_one_name_are_told_apart_with_a_warning() -> None:
    names = ["background", "x", "x", "x (2)", "x", "background"]
    data = TaskData([1], [1], "", class_names=names)  # type: ignore[arg-type]  # lists in place of data sets
    assert data.class_names == ("background", "x", "x (3)", "x (2)", "x (4)", "background (2)")
    assert data.warnings == (
        "data: classes have the name of another and are told by a number: x (3); x (4); background (2)",
    )


def test_what_is_no_utf8_in_names_and_warnings_is_escaped() -> None:
    said = {"warnings": ("\ud800 is left out",), "notes": ("\udcff",)}
    data = TaskData([1], [1], "", class_names=("a\udcff", "b"), **said)  # type: ignore[arg-type]  # lists, as above
    assert data.class_names == (r"a\udcff", "b")
    assert data.warnings == (r"\ud800 is left out",)
    assert data.notes == (r"\udcff",)
