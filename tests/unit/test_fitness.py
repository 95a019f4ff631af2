"""Whether a host can begin runs: when it closes itself, and what opens it again."""

from pathlib import Path

import pytest

from tests.clock import Clock
from tests.waiting import wait_until
from worker import fitness
from worker.fitness import FIRST_REST_S, Fitness, write_fault


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fitness, "clock", clock)
    return clock


def opens(host: Fitness) -> None:
    def is_open() -> bool:
        host.look()
        return host.fault() is None

    wait_until(is_open, timeout_s=10, what="the host to be opened by its trial")


def test_a_run_root_that_can_not_be_written_is_a_fault_until_it_can(tmp_path: Path) -> None:
    run_root = tmp_path / "runs"
    host = Fitness(run_root)
    run_root.touch()
    broken = host.fault()
    run_root.unlink()
    run_root.mkdir()

    assert broken == f"unable to write its run root {run_root}: Not a directory"
    assert host.fault() is None
    assert list(run_root.iterdir()) == []


def test_a_run_root_that_is_gone_is_not_made_anew_by_looking(tmp_path: Path) -> None:
    assert write_fault(tmp_path / "gone") == f"unable to write its run root {tmp_path}/gone: No such file or directory"
    assert not (tmp_path / "gone").exists()


def test_a_host_closes_after_two_supervisors_in_a_row_that_never_claimed_and_opens_once_one_could_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    host = Fitness(tmp_path)
    for _ in range(3):  # one that begins is between them
        host.note_not_begun("its supervisor exited with status 1")
        host.note_begun()
    assert host.fault() is None

    host.note_not_begun("its supervisor exited with status 1")
    host.note_not_begun("its supervisor exited with status 1:\nImportError:\0 no torch\n")
    assert host.fault() == "unable to start supervisors: its supervisor exited with status 1: ImportError:  no torch"
    monkeypatch.setattr(fitness, "TRIAL", ["false"])
    host.look()
    assert host._trial is not None
    assert host._trial.wait(10) == 1
    host.look()
    assert host.fault() is not None

    clock.at += FIRST_REST_S
    monkeypatch.setattr(fitness, "TRIAL", ["true"])
    opens(host)


def test_a_host_whose_trial_succeeds_though_its_supervisors_fail_is_given_one_job_at_a_time_and_ever_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    host = Fitness(tmp_path)
    monkeypatch.setattr(fitness, "TRIAL", ["true"])
    host.note_not_begun("status 1")
    host.note_not_begun("status 1")
    opens(host)  # at once, the first time
    rests = []
    for _ in range(3):
        host.note_not_begun("status 1")
        assert host.fault() is not None
        closed_at = clock.at
        while host._trial is None:
            clock.at += 1
            host.look()
        rests.append(clock.at - closed_at)
        opens(host)

    assert rests == [30, 60, 120]


@pytest.mark.usefixtures("clock")
def test_the_trial_is_what_a_supervisor_begins_with(tmp_path: Path) -> None:
    host = Fitness(tmp_path)
    host.note_not_begun("status 1")
    host.note_not_begun("status 1")
    host.look()

    assert host._trial is not None
    assert host._trial.wait(60) == 0
