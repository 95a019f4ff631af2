"""Whether the kernel has just ended a process for want of memory, and for whose."""

import os
from pathlib import Path

import pytest

from trainer.oom_kills import OomKill, OomKills


class Kernel:
    """What the kernel shows of this process, in files of the test's, and its clock."""

    def __init__(self, folder: Path, *, group: str = "", starters: str = "/worker") -> None:
        """`group` is the control group of the run, if any, and `starters` that of whoever has started it."""
        self.proc, self.tree, self.now_s = folder / "proc", folder / "cgroup", 0.0
        self._events = self.tree / group.lstrip("/") / "memory.events" if group else None
        for process, of in (("self", group), (str(os.getppid()), starters)):
            (self.proc / process).mkdir(parents=True)
            (self.proc / process / "cgroup").write_text(f"1:cpu:/elsewhere\n0::{of}\n" if group else "1:cpu:/\n")
        (self.proc / "self/mountinfo").write_text(f"38 31 0:41 / {self.tree} rw,relatime - cgroup2 cgroup2 rw\n")
        self.count(host=7)

    def count(self, *, host: int = 0, group: int = 0, limit: int = 0) -> None:
        (self.proc / "vmstat").write_text(f"pgfault 12\noom_kill {host}\nzone_reclaim_failed 0\n")
        if self._events is not None:
            self._events.parent.mkdir(parents=True, exist_ok=True)
            self._events.write_text(f"low 0\nhigh 0\nmax {limit}\noom {limit}\noom_kill {group}\noom_group_kill 0\n")

    def kills(self) -> OomKills:
        return OomKills(proc=self.proc, clock=lambda: self.now_s)


def test_a_kill_counts_for_a_moment(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kills = kernel.kills()
    assert kills.just_now() is None
    kernel.count(host=8)
    assert kills.just_now() is OomKill.ANYBODY
    for _ in range(3):
        kernel.now_s += 1
        kills.look()
    assert kills.just_now() is None


def test_a_run_that_comes_to_the_limit_of_its_own_group_is_out_of_memory(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, group="/worker/rankzero.job-1.attempt-1")
    kills = kernel.kills()
    kernel.count(host=8, group=1, limit=1)
    assert kills.just_now() is OomKill.OWN


def test_a_run_that_is_killed_in_a_group_that_had_memory_left_may_have_lost_it_to_a_neighbour(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, group="/worker/rankzero.job-1.attempt-1")
    kills = kernel.kills()
    kernel.count(host=8, group=1)
    assert kills.just_now() is OomKill.ANYBODY


def test_the_limit_of_a_group_that_its_starter_is_in_is_not_the_run_s_own(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, group="/container", starters="/container")
    kills = kernel.kills()
    kernel.count(host=8, group=1, limit=1)
    assert kills.just_now() is OomKill.ANYBODY


def test_a_kill_in_another_group_is_none_of_this_run_s(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, group="/worker/rankzero.job-1.attempt-1")
    kills = kernel.kills()
    kernel.count(host=8)
    assert kills.just_now() is None


@pytest.mark.parametrize("text", ["", "oom_kill\n", "oom_kill many\n"])
def test_a_system_without_a_count_has_no_kills(text: str, tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text(text)
    assert OomKills(proc=tmp_path).just_now() is None
