"""Whether the kernel has just ended a process for want of memory."""

from pathlib import Path

import pytest

from trainer import oom_kills
from trainer.oom_kills import OomKills


def test_a_kill_counts_for_a_moment() -> None:
    count, now_s = 3, 0.0
    kills = OomKills(kills=lambda: count, clock=lambda: now_s)
    assert not kills.has_just_killed()
    count = 4
    assert kills.has_just_killed()
    for _ in range(3):
        now_s += 1
        kills.look()
    assert not kills.has_just_killed()


def test_the_kernel_s_count_is_read_and_a_system_without_one_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oom_kills, "_VMSTAT", tmp_path / "vmstat")
    assert oom_kills._kills() == 0
    (tmp_path / "vmstat").write_text("pgfault 12\noom_kill 7\nzone_reclaim_failed 0\n")
    assert oom_kills._kills() == 7
