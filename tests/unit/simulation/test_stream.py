"""Streams: made up, written, read again, and what is refused."""

from pathlib import Path

import pytest

from jobs.simulation import stream
from jobs.simulation.stream import InvalidStreamError
from jobs.simulation.synthetic import Size, make_stream
from tests.unit.simulation.streams import job

GOOD = '{"submitted_s": 3, "runs_s": 10, "request": {"device": "0,1", "per_node": 2}}'


def test_a_stream_that_was_written_is_read_again_as_it_was(tmp_path: Path) -> None:
    jobs = make_stream(Size(50, 16, 8, load=1), seed=1)
    stream.write(tmp_path / "jobs.jsonl", jobs)
    assert stream.read(tmp_path / "jobs.jsonl") == jobs


def test_a_file_is_read_in_order_of_submission(tmp_path: Path) -> None:
    stream.write(tmp_path / "jobs.jsonl", [job(9, 1), job(3, 2)])
    assert [each.submitted_s for each in stream.read(tmp_path / "jobs.jsonl")] == [3, 9]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "line 2: Invalid JSON"),
        ("[]", "line 2: "),
        (GOOD.replace("10", "-10"), "line 2: runs_s: "),
        (GOOD.replace("10", "NaN"), "line 2: runs_s: "),
        (GOOD.replace('"per_node": 2', '"per_node": 0'), "line 2: request.per_node: "),
        (GOOD.replace('"0,1"', '"0,0"'), "line 2: request: device: "),
        (GOOD.replace('"0,1"', '"0,1,2"'), "line 2: request: per_node is 2, and device asks for 3"),
        (GOOD.replace('"0,1"', '{"count": 1}'), "line 2: request: per_node is 2, and device asks for 1"),
        (GOOD.replace("}}", ', "time_limit_s": 0}}'), "line 2: request.time_limit_s: "),
        (GOOD.replace("}}", '}, "prio": 3}'), "line 2: prio: "),
    ],
)
def test_a_bad_line_is_named_with_its_field(tmp_path: Path, line: str, named: str) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(InvalidStreamError) as caught:
        stream.read(path)
    assert str(caught.value).startswith(f"{path}, {named}")


def test_a_device_list_is_read_as_the_service_reads_it(tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text(GOOD)
    (only,) = stream.read(tmp_path / "jobs.jsonl")
    assert only.request.device == "cuda:0,cuda:1"


def test_an_empty_file_is_no_stream(tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text("\n")
    with pytest.raises(InvalidStreamError, match="has no job"):
        stream.read(tmp_path / "jobs.jsonl")


def test_a_made_up_stream_asks_for_as_much_as_its_load_says() -> None:
    jobs = make_stream(Size(2000, 400, 8, load=0.8), seed=2)
    asked = sum(each.real_s * each.request.device_count for each in jobs)
    # The last one comes close to the end of the span.
    assert asked / (400 * jobs[-1].submitted_s) == pytest.approx(0.8, rel=0.02)


@pytest.mark.parametrize(("devices", "per_host"), [(1, 8), (6, 8), (8, 8), (12, 4), (64, 2)])
def test_a_made_up_stream_asks_for_nothing_that_its_fleet_has_not(devices: int, per_host: int) -> None:
    for each in make_stream(Size(300, devices, per_host, load=1), seed=3):
        assert each.request.per_node <= min(devices, per_host)
        assert each.request.nodes <= max(devices // per_host, 1)
