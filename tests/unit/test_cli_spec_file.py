"""Job specs from files and flags."""

from pathlib import Path

import pytest

from rankzero.cli.spec_file import here, merged, parse_labels, parse_settings, read_spec
from rankzero.errors import UsageError


def test_flags_come_on_top_of_the_file_and_leave_the_rest_of_it() -> None:
    spec = {"device": "cpu", "priority": 10, "train": {"model": "a", "data": "d"}}
    job = {"device": "0,1", "name": None}
    assert merged(spec, job=job, train={"model": "b", "epochs": None}) == {
        "device": "0,1",
        "priority": 10,
        "train": {"model": "b", "data": "d"},
    }


def test_settings_are_read_as_yaml() -> None:
    words = ["a=1", "b=0.5", "c=true", "d=null", "e=text", "f=[1, 2]", "g=x=y", "h="]
    assert parse_settings(words) == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "text",
        "f": [1, 2],
        "g": "x=y",
        "h": None,
    }


def test_labels_stay_text() -> None:
    assert parse_labels(["a=1", "b=x=y", "команда=🚀"]) == {"a": "1", "b": "x=y", "команда": "🚀"}
    assert parse_labels([]) is None


@pytest.mark.parametrize("word", ["a", "=a", ""])
def test_a_word_that_is_no_pair_is_shown(word: str) -> None:
    with pytest.raises(UsageError, match="key=value"):
        parse_labels([word])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"job\.yaml"):
        read_spec(file)


def test_a_file_nested_too_deep_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("[" * 5000)
    with pytest.raises(UsageError, match=r"job\.yaml"):
        read_spec(file)


def test_a_folder_of_this_machine_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert here("./images") == str(tmp_path / "images")
    assert here("images/") == str(tmp_path / "images")
    assert here("digits") == "digits"
    assert here("./elsewhere") == "./elsewhere"
    assert here(None) is None
