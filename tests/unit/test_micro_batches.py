"""What becomes of a global batch that does not fit into a device's memory: finer parts, or advice."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset

from trainer.config import TrainConfig
from trainer.error_report import ErrorReport
from trainer.errors import Cause, ConfigError
from trainer.journal import JournalWriter, Log, Started, read_records
from trainer.micro_batches import hint, is_out_of_device_memory, micro_batch, more_parts, with_way_out
from trainer.normalization import Normalization
from trainer.relaunch import commit, last_seq, smaller_parts
from trainer.run_dir import RunConfig, RunDir
from trainer.sampling import GlobalBatchSampler


class Numbers(Dataset[Any]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return index


def config(*, ranks: int = 2, nnodes: int = 1, micro_batches: int = 1, **options: Any) -> RunConfig:
    train = TrainConfig.model_validate({"model": "resnet18", "data": "digits", "batch": 16} | options)
    return RunConfig(
        train=train, devices=("cuda:0", "cuda:1")[:ranks], nnodes=nnodes, master_port=29400, micro_batches=micro_batches
    )


def ran_out(
    *, cause: Cause = Cause.OUT_OF_MEMORY, exception: str = "torch.OutOfMemoryError", message: str = "it is full"
) -> ErrorReport:
    return ErrorReport(cause=cause, message=message, time=datetime.now(UTC), rank=1, exception=exception)


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    """A run whose ranks had begun to train."""
    made = RunDir(tmp_path / "run")
    made.create(config())
    JournalWriter(made.journal).append(Started, world_size=2, devices=("cuda:0", "cuda:1"), batch=16)
    return made


@given(st.integers(1, 5000))
def test_parts_grow_until_each_is_one_sample_by_halves_where_they_are_even(share: int) -> None:
    parts, sizes = 1, [share]
    while (finer := more_parts(share, parts)) is not None:
        assert finer > parts
        assert share % finer == 0
        if sizes[-1] % 2 == 0:
            assert finer == 2 * parts
        parts = finer
        sizes.append(share // parts)
    assert sizes[-1] == 1


def test_an_odd_part_is_cut_to_the_next_divisor() -> None:
    assert [more_parts(45, parts) for parts in (1, 3, 5, 9, 15, 45)] == [3, 5, 9, 15, 45, None]
    assert [more_parts(12, parts) for parts in (1, 2, 4, 6)] == [2, 4, 6, 12]


@given(
    samples=st.integers(1, 300),
    share=st.integers(1, 12),
    world_size=st.integers(1, 3),
    accumulate=st.integers(1, 3),
    choice=st.data(),
)
def test_parts_take_the_same_samples_in_the_same_steps_with_the_same_weights(
    samples: int, share: int, world_size: int, accumulate: int, choice: st.DataObject
) -> None:
    leaves_out = choice.draw(
        st.sampled_from([None, *(Normalization(ranks=ranks, devices=1).leaves_out for ranks in {1, world_size})])
    )
    parts = choice.draw(st.sampled_from([count for count in range(1, share + 1) if share % count == 0]))
    for rank in range(world_size):
        taken = []
        for cut in (1, parts):
            sampler = GlobalBatchSampler(
                Numbers(samples),
                batch=share * world_size,
                parts=cut,
                rank=rank,
                world_size=world_size,
                seed=3,
                accumulate=accumulate,
                leaves_out=leaves_out,
            )
            keys = iter(sampler)
            steps = []
            for step in range(sampler.steps_per_epoch):
                weights: dict[int, float] = {}
                for part in sampler.parts_of(step):
                    size = sampler.local_size(part)
                    taken_now = next(keys)
                    assert len(taken_now) == max(1, size)
                    weights |= {index: sampler.weight(part) / size for _, index in taken_now[:size]}
                steps.append(weights)
            taken.append(steps)
        whole, cut_up = taken
        assert [weights.keys() for weights in cut_up] == [weights.keys() for weights in whole]
        assert all(
            weights[index] == pytest.approx(weight)
            for weights, expected in zip(cut_up, whole, strict=True)
            for index, weight in expected.items()
        )


@pytest.mark.parametrize(("sync_bn", "more"), [(None, ""), (False, ", or sync_bn: true")])
def test_parts_too_small_for_batchnorm_are_too_little_memory(sync_bn: bool | None, more: str) -> None:
    refused = ran_out(
        cause=Cause.CONFIG,
        exception="builtins.ValueError",
        message="batch: too small for BatchNorm (ValueError: Expected more than 1 value per channel when training, got "
        "input size torch.Size([1, 4, 1, 1])); take a larger batch",
    )
    told = with_way_out(refused, config(micro_batches=8, sync_bn=sync_bn), is_relaunched=True)
    assert told.cause is Cause.OUT_OF_MEMORY
    assert told.message == (
        "out of a device's memory with more than 1 sample at a time, and so few give BatchNorm a single value per "
        f"channel, which it cannot normalise by; take a smaller model or image_size, or amp: bf16{more}"
    )
    assert with_way_out(refused, config(sync_bn=sync_bn), is_relaunched=True) == refused


def test_parts_that_a_device_s_share_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"micro_batches: 8 samples, a device's share of batch 16, .* into 3 parts"):
        micro_batch(16, 2, parts=3)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ran_out(), True),
        (ran_out(exception="builtins.RuntimeError", message="RuntimeError: MPS backend out of memory (…)"), True),
        (ran_out(exception="torch.AcceleratorError", message="AcceleratorError: CUDA error: out of memory"), True),
        (ran_out(exception="builtins.MemoryError"), False),
        (ran_out(exception="builtins.RuntimeError", message="DefaultCPUAllocator: can't allocate memory"), False),
        (ran_out(exception="builtins.RuntimeError", message="insufficient shared memory (shm)"), False),
        (ran_out(exception="trainer.errors.DeviceMemoryError"), False),
        (ran_out(cause=Cause.COMMUNICATION, exception="builtins.RuntimeError"), False),
    ],
)
def test_only_the_memory_of_a_device_is_spared_by_smaller_parts(error: ErrorReport, expected: bool) -> None:
    assert is_out_of_device_memory(error) is expected


def test_a_run_goes_on_in_more_parts_and_the_journal_says_what_it_costs(run_dir: RunDir) -> None:
    smaller = smaller_parts(run_dir, config(), ran_out(), since=-1)
    assert smaller == config(micro_batches=2)
    commit(run_dir, smaller, ran_out())
    assert run_dir.read_config() == smaller
    told = list(read_records(run_dir.journal))[-1]
    assert isinstance(told, Log)
    assert (told.level, told.message) == (
        "warning",
        "rank 1: it is full: the ranks start anew from the start of this run and go on with the same batch of 16 in 2 "
        "parts, 4 samples on each device at a time, whose gradients are added up",
    )
    # The new ranks have not come as far as to train, so parts are not what they lack memory for.
    assert smaller_parts(run_dir, smaller, ran_out(), since=last_seq(run_dir)) is None


def test_a_measured_batch_stays_what_it_was(run_dir: RunDir) -> None:
    smaller = smaller_parts(run_dir, config(batch=-1), ran_out(), since=-1)
    assert smaller is not None
    assert (smaller.train.batch, smaller.micro_batches) == (16, 2)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (config(nnodes=2), ran_out()),
        (config(micro_batches=8), ran_out()),
        (config(), ran_out(exception="builtins.MemoryError")),
    ],
    ids=["other nodes", "one sample", "memory of the host"],
)
def test_a_run_ends_where_smaller_parts_cannot_help(run: RunConfig, error: ErrorReport, run_dir: RunDir) -> None:
    assert smaller_parts(run_dir, run, error, since=-1) is None


@pytest.mark.parametrize(
    ("run", "is_relaunched", "said"),
    [
        (config(nnodes=2), False, "; to take the same steps with less memory, begin anew with batch: 8 and nbs: 16"),
        (config(nbs=50), False, "; to take the same steps with less memory, begin anew with batch: 8 and nbs: 48"),
        (config(micro_batches=8), True, "; each device has one sample at a time: take a smaller model or image_size, "),
        (config(), True, ""),
        (config(batch=-1), False, ""),
    ],
)
def test_the_error_says_what_to_set_where_we_do_nothing(run: RunConfig, is_relaunched: bool, said: str) -> None:
    message = with_way_out(ran_out(), run, is_relaunched=is_relaunched).message
    assert message.startswith(f"it is full{said}")
    assert bool(said) or message == "it is full"


def test_a_user_of_parts_is_told_what_batchnorm_normalises_over() -> None:
    assert hint(64, 1, True) is None
    told = hint(64, 4, True)
    assert told is not None
    assert "4 parts of 16" in told
    assert "BatchNorm normalises over a part" in told
    assert "BatchNorm" not in (hint(64, 4, False) or "")
