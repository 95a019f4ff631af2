"""`python -m jobs.simulate`: what it prints, what it refuses, and its end before it is done."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import simulate
from jobs.simulation import stream
from tests.unit.simulation.streams import job


def test_a_recorded_stream_is_simulated_and_reported_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream.write(tmp_path / "jobs.jsonl", [job(0, 100, devices=2), job(10, 50)])
    assert simulate.main(["--stream", str(tmp_path / "jobs.jsonl"), "--devices", "2", "--tick-s", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ended"], found["simulated_s"], found["waits"]["longest_s"]) == (2, 150, 90)


def test_the_report_says_waits_bound_and_planning_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--jobs", "50", "--devices", "16", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "50 jobs on 16 devices of 2 hosts" in out
    assert "submitted 50, started 50, ended 50" in out
    assert "jobs that waited for longer than their bound: 0" in out


def test_a_made_up_stream_that_is_recorded_gives_the_same_report_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(tmp_path / "jobs.jsonl")
    made_up = ["--jobs", "60", "--seed", "4", "--record", record]
    reports = []
    for source in (made_up, ["--stream", record]):
        assert simulate.main([*source, "--devices", "16", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        del found["planning"]
        reports.append(found)
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stream", "nowhere.jsonl"], "--stream nowhere.jsonl: No such file"),
        (["--devices", "0"], "--devices: '0' is not a whole number from 1 on"),
        (["--tick-s", "nan"], "--tick-s: 'nan' is not a number above 0"),
        (["--stream", "x", "--seed", "1"], "are for a stream that is made up"),
        (["--stream", "x", "--from-database"], "not allowed with"),
        (["--from-database"], "there is no such file; set RANKZERO_DATABASE_URL"),
    ],
)
def test_what_cannot_be_simulated_is_named(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        simulate.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_ends_it_with_what_there_is_so_far() -> None:
    # More than it could do in the time that this test has.
    command = [sys.executable, "-m", "jobs.simulate", "--jobs", "5000", "--devices", "200", "--tick-s", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True
    )
    with process:
        assert process.stderr is not None
        assert "of 5,000 jobs done" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == simulate.EXIT_INTERRUPTED
    assert "interrupted: the report is of what there is so far" in err
    assert out.startswith("5,000 jobs on 200 devices")
    assert "Traceback" not in err
