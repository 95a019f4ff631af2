"""Which steps of an epoch are traced, and what becomes of a large trace."""

import gzip
from pathlib import Path

import pytest
import torch

from trainer import profiling
from trainer.config import TrainConfig
from trainer.profiling import StepProfiler, plan, why_unprofiled
from trainer.reporting import SilentJournal


@pytest.mark.parametrize(
    ("steps", "planned"), [(1, (0, 0, 1)), (5, (0, 0, 5)), (6, (0, 1, 5)), (9, (2, 2, 5)), (1000, (3, 2, 5))]
)
def test_the_steps_that_are_kept_come_before_those_that_lead_up_to_them(
    steps: int, planned: tuple[int, int, int]
) -> None:
    assert plan(steps) == planned


def test_several_ranks_are_told_that_there_is_no_trace() -> None:
    asked = TrainConfig(model="resnet18", data="digits", profile=True)
    assert why_unprofiled(asked, 1) is None
    assert why_unprofiled(asked.model_copy(update={"profile": False}), 2) is None
    told = why_unprofiled(asked, 2)
    assert told is not None
    assert "profile: without effect among 2 ranks" in told


def test_a_large_trace_is_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "steps-1-4.json"
    trace.write_text("{}")
    assert profiling._compressed_if_large(trace) == trace
    monkeypatch.setattr(profiling, "_LARGE_BYTES", 2)
    compressed = profiling._compressed_if_large(trace)
    assert compressed.name == "steps-1-4.json.gz"
    assert gzip.decompress(compressed.read_bytes()) == b"{}"
    assert not trace.exists()


def test_it_is_told_for_how_long_steps_may_take_longer(tmp_path: Path) -> None:
    profiler = StepProfiler(tmp_path / "profile", torch.device("cpu"), SilentJournal(), is_on=True)
    at_work = [profiler.is_at_work]
    with profiler.first_epoch(steps_before=0, steps=12) as step_is_taken:
        for _ in range(12):
            at_work.append(profiler.is_at_work)
            step_is_taken()
    assert at_work == [False, *[True] * 10, False, False]
    assert list((tmp_path / "profile").iterdir())
