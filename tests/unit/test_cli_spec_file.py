"""Job specs from files and flags."""

from pathlib import Path

import pytest

from rankzero.cli.spec_file import here, merged, parse_device, parse_labels, parse_settings, read_spec
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


@pytest.mark.parametrize("field", ["model", "data", "epochs", "batch", "lr", "recipe"])
def test_a_field_is_set_by_its_flag_or_by_name_and_not_by_both(field: str) -> None:
    flags = dict.fromkeys(["model", "data", "epochs", "batch", "lr", "recipe"])
    settings = {field: 3}
    assert merged({}, job={}, train=flags, settings=settings) == {"train": settings}
    with pytest.raises(UsageError, match=f"--{field} and by --set {field}="):
        merged({}, job={}, train=flags | {field: 4}, settings=settings)


@pytest.mark.parametrize(("text", "number"), [("1e-1", 0.1), ("1.5E3", 1500), ("-2e+2", -200), (".5e1", 5)])
def test_a_number_with_an_exponent_is_one_in_settings_and_in_a_json_file(
    text: str, number: float, tmp_path: Path
) -> None:
    assert parse_settings([f"options.mixup={text}"]) == {"options.mixup": number}
    file = tmp_path / "job.json"
    file.write_text(f'{{"train": {{"options": {{"mixup": {text}, "name": "e1", "hash": "1e-1"}}}}}}')
    assert read_spec(file)["train"]["options"] == {"mixup": number, "name": "e1", "hash": "1e-1"}


def test_a_setting_of_null_is_set() -> None:
    spec = {"train": {"nbs": 64}}
    assert merged(spec, job={}, train={}, settings=parse_settings(["nbs=null"])) == {"train": {"nbs": None}}


@pytest.mark.parametrize(
    ("words", "train"),
    [
        (["options.mixup=0.2"], {"options": {"kept": 1, "mixup": 0.2}}),
        (["options.synthetic.classes=3"], {"options": {"kept": 1, "synthetic": {"classes": 3}}}),
        (["options={new: 1}", "options.mixup=0.2"], {"options": {"new": 1, "mixup": 0.2}}),
        (["options={old: 1}", "options.mixup=0.2", "options={new: 1}"], {"options": {"new": 1}}),
        (["options=null", "options.mixup=0.2"], {"options": {"mixup": 0.2}}),
    ],
)
def test_a_dotted_name_sets_a_field_within_a_field_and_leaves_the_rest(words: list[str], train: object) -> None:
    spec = {"train": {"options": {"kept": 1}}}
    assert merged(spec, job={}, train={}, settings=parse_settings(words)) == {"train": train}
    assert spec == {"train": {"options": {"kept": 1}}}


def test_a_dotted_name_within_what_has_no_fields_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--set options\.a\.b=…: options\.a is 3"):
        merged({}, job={}, train={}, settings=parse_settings(["options.a=3", "options.a.b=1"]))
    with pytest.raises(UsageError, match=r"'options\.' has no name"):
        parse_settings(["options.=1"])


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


@pytest.mark.parametrize(
    "value", ["2026-13-45", "9" * 5000, "[" * 5000, "!!bool x", "!!int ''", "!!timestamp x", "*nothing"]
)
def test_a_value_that_cannot_be_read_is_refused_wherever_it_stands(value: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"name: {value}")
    with pytest.raises(UsageError, match=r"job\.yaml"):
        read_spec(file)
    with pytest.raises(UsageError, match="--set seed="):
        parse_settings([f"seed={value}"])
    with pytest.raises(UsageError, match="--device "):
        parse_device(f"{{count: {value}}}")


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
