"""How the words of the command's options are read."""

from typing import Any

import pytest

from rankzero.cli.options import parse_duration, parse_start
from rankzero.cli.spec_file import parse_device
from rankzero.cli.verbs import parse_changes
from rankzero.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), ("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), ("2 d", 172_800), ("0", 0)],
)
def test_a_duration_is_read_in_seconds(text: str | None, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1h30m", "1e3", "h", "1w", "\u0661h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write it as 90s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("start_from", "mode", "expected"),
    [
        (None, None, None),
        ("7", None, {"job": 7}),
        ("7:12", "resume", {"job": 7, "checkpoint": 12, "mode": "resume"}),
    ],
)
def test_a_start_names_a_job_and_may_name_a_checkpoint(
    start_from: str | None, mode: str | None, expected: dict[str, Any] | None
) -> None:
    assert parse_start(start_from, mode) == expected


@pytest.mark.parametrize(
    ("start_from", "mode", "complaint"),
    [
        ("last", None, "JOB or JOB:CHECKPOINT"),
        ("7:", None, "JOB or JOB:CHECKPOINT"),
        ("9" * 5000, None, "JOB or JOB:CHECKPOINT"),
        (None, "resume", "name its job with --start-from"),
    ],
)
def test_what_is_no_start_is_refused(start_from: str | None, mode: str | None, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_start(start_from, mode)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["priority=0"], (0, {})),
        (["label.a=b"], (None, {"a": "b"})),
        (["label.a=", "priority=90", "label.a.b=c=d"], (90, {"a": "", "a.b": "c=d"})),
        (["label.a=b-", "label.c-"], (None, {"a": "b-", "c": None})),
    ],
)
def test_changes_are_a_priority_and_labels_that_are_set_or_taken_away(
    words: list[str], changes: tuple[int | None, dict[str, str | None]]
) -> None:
    assert parse_changes(words) == changes


@pytest.mark.parametrize(
    "word", ["", "priority", "priority=", "priority=high", "priority=-1", "label.=b", "label.-", "a=b", "label.a"]
)
def test_what_is_no_change_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"label\.team-"):
        parse_changes([word])


@pytest.mark.parametrize(
    ("text", "device"),
    [
        (None, None),
        ("0,1", "0,1"),
        ("1", "1"),
        ('{"count": 1}', {"count": 1}),
        (" {count: 2, min_memory_gb: 40}", {"count": 2, "min_memory_gb": 40}),
    ],
)
def test_a_device_in_braces_is_a_number_of_devices(text: str | None, device: Any) -> None:
    assert parse_device(text) == device


def test_braces_that_do_not_close_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--device \{count: 1"):
        parse_device("{count: 1")
