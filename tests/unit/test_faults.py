"""What an exception in a rank stands for."""

import errno
import os
from typing import Any, NoReturn

import pytest
import torch

from trainer.errors import Cause, CheckpointError, ConfigError, DataError, NonFiniteLossError, with_cause
from trainer.faults import cause_of, report_of

OF_TORCH = """CUDA kernel errors might be asynchronously reported at some other API call.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
"""What torch says behind any error of CUDA's."""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConfigError("x"), Cause.CONFIG),
        (DataError("x"), Cause.DATA),
        (CheckpointError("x"), Cause.CHECKPOINT),
        (NonFiniteLossError("x"), Cause.NON_FINITE_LOSS),
        (MemoryError(), Cause.OUT_OF_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory"), Cause.OUT_OF_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), Cause.OUT_OF_MEMORY),
        (OSError(errno.ENOSPC, "No space left on device"), Cause.DISK_FULL),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), Cause.DISK_FULL),
        (torch.distributed.DistNetworkError("gone"), Cause.COMMUNICATION),
        (
            RuntimeError("[/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer"),
            Cause.COMMUNICATION,
        ),
        (RuntimeError("CUDA error: device-side assert triggered\nCompile with …"), Cause.EXCEPTION),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), Cause.EXCEPTION),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), Cause.DEVICE),
        (RuntimeError("CUDA error: unspecified launch failure"), Cause.DEVICE),
        (RuntimeError(f"CUDA error: unknown error\n{OF_TORCH}"), Cause.DEVICE),
        (RuntimeError(f"CUDA error: initialization error\n{OF_TORCH}"), Cause.DEVICE),
        (RuntimeError("CUDA error: out of memory"), Cause.OUT_OF_MEMORY),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            Cause.OUT_OF_MEMORY,
        ),
        (torch.distributed.DistBackendError("NCCL error … ncclRemoteError: a peer has gone"), Cause.COMMUNICATION),
        (
            torch.distributed.DistBackendError("NCCL error … 'uncorrectable ECC error encountered'"),
            Cause.DEVICE,
        ),
        (RuntimeError("DataLoader worker (pid 12) is killed by signal: Killed. "), Cause.KILLED_BY_SIGNAL),
        (RuntimeError("DataLoader worker (pid(s) 12) exited unexpectedly"), Cause.KILLED_BY_SIGNAL),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), Cause.EXCEPTION),
        (ValueError("x"), Cause.EXCEPTION),
        (ValueError("Expected more than 1 value per channel when training, got input size …"), Cause.CONFIG),
        (FileNotFoundError(errno.ENOENT, "x"), Cause.EXCEPTION),
    ],
    ids=lambda value: f"{value!r:.40}",
)
def test_an_exception_stands_for_its_cause(error: BaseException, cause: Cause) -> None:
    assert cause_of(error) is cause


def test_memory_that_the_cpu_s_allocator_does_not_get_is_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**60)
    assert cause_of(raised.value) is Cause.OUT_OF_MEMORY


def test_a_disk_that_is_full_under_torch_save_is_disk_full() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises((OSError, RuntimeError)) as raised, open("/dev/full", "wb", buffering=0) as full:
        torch.save({"weights": torch.zeros(1000)}, full)
    assert cause_of(raised.value) is Cause.DISK_FULL


def test_the_cause_is_found_behind_an_exception_that_was_raised_from_it() -> None:
    error = RuntimeError("could not write")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert cause_of(error) is Cause.DISK_FULL


def test_a_report_has_one_line_for_people_and_the_whole_traceback() -> None:
    try:
        raise ValueError("first line\nsecond line")
    except ValueError as error:
        report = report_of(error, rank=3)
    assert (report.rank, report.message, report.exception) == (3, "ValueError: first line", "builtins.ValueError")
    assert report.traceback is not None
    assert "test_faults.py" in report.traceback


def test_an_error_of_a_gpu_says_where_to_look_further() -> None:
    ecc = report_of(RuntimeError("CUDA error: uncorrectable ECC error encountered"), rank=0)
    assert "Xid" in ecc.message
    label = report_of(RuntimeError("CUDA error: device-side assert triggered\nCompile with …"), rank=0)
    assert "a label or an index out of range" in label.message


class _Unreadable(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> NoReturn:
        raise DataError(f"{index}.jpg: not a readable image")


def test_an_error_of_our_own_is_told_without_the_name_of_its_class() -> None:
    said = "data: there is no folder"
    assert report_of(DataError(said), rank=0).message == said
    assert report_of(DataError(), rank=0).message == "DataError"


def test_a_cause_is_told_once() -> None:
    assert with_cause(Cause.DATA, "data: there is no folder") == "data: there is no folder"
    assert with_cause(Cause.DATA, "0.jpg: not a readable image") == "data: 0.jpg: not a readable image"


def test_an_error_of_our_own_in_a_loader_process_is_told_without_the_name_of_its_class() -> None:
    with pytest.raises(DataError) as raised:
        next(iter(torch.utils.data.DataLoader(_Unreadable(), num_workers=1)))
    assert report_of(raised.value, rank=0).message == "0.jpg: not a readable image"


class _OnTheGpu(torch.utils.data.Dataset[Any]):
    """Uses the GPU, as a dataset's author may have it: in a loader process CUDA fails so."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> NoReturn:
        raise RuntimeError(f"CUDA error: initialization error\n{OF_TORCH}")


def test_cuda_in_a_loader_process_is_the_program_s_fault_and_not_the_gpu_s() -> None:
    with pytest.raises(RuntimeError) as raised:
        next(iter(torch.utils.data.DataLoader(_OnTheGpu(), num_workers=1)))
    report = report_of(raised.value, rank=0)
    assert report.cause is Cause.EXCEPTION
    assert report.message.startswith("RuntimeError: CUDA error: initialization error; loader processes are forks")


class _BrokenReads(torch.utils.data.Dataset[int]):
    """Its items cannot be handed over: what carries them from a loader process breaks, as when that process is gone."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def test_a_read_that_breaks_on_its_way_from_a_loader_means_that_the_loader_is_gone() -> None:
    loader = iter(torch.utils.data.DataLoader(_BrokenReads(), num_workers=1))
    loader._worker_result_queue._reader.close()  # type: ignore[attr-defined]  # as a dead process leaves it
    with pytest.raises(OSError, match="closed") as broken:
        next(loader)
    report = report_of(broken.value, rank=1, loader_check=lambda _number, _frame: None)
    assert report.cause is Cause.KILLED_BY_SIGNAL
    assert "loader" in report.message.lower()


def raised_in(*files: str) -> AssertionError:
    """An error of torch.compile's code with these files in its traceback, the innermost last."""
    call = "raise AssertionError('expected size 512==512, stride 9==1 at dim=1\\nError in op: …')"
    for file in reversed(files):
        call = f"exec(compile({call!r}, {file!r}, 'exec'))"
    with pytest.raises(AssertionError) as raised:
        exec(call)  # noqa: S102  (the only way to a file name of one's own in a traceback)
    return raised.value


@pytest.mark.parametrize(
    ("files", "is_theirs"),
    [
        (("torch/_dynamo/eval_frame.py", "/site/torch/_inductor/utils.py", "/tmp/torchinductor_me/al/calk.py"), True),
        (("torch/_dynamo/eval_frame.py", "/site/torch/_inductor/async_compile.py"), True),
        (("/site/torch/_dynamo/eval_frame.py", "/home/me/model.py"), False),  # called by the compiler, as it is written
        (("/home/me/model.py",), False),
    ],
)
def test_an_error_of_compiled_code_says_that_the_model_s_own_code_did_not_raise_it(
    files: tuple[str, ...], is_theirs: bool
) -> None:
    message = report_of(raised_in(*files), rank=0).message
    assert message.startswith("AssertionError: expected size 512==512, stride 9==1 at dim=1")
    assert message.endswith("leave compile out, and the model computes itself") is is_theirs


def test_a_model_that_the_compiler_refuses_is_said_to_train_without() -> None:
    def broken(_graph: object, _inputs: object) -> NoReturn:
        raise AssertionError("no such kernel")

    with pytest.raises(Exception, match="no such kernel") as raised:
        torch.compile(torch.nn.Linear(2, 2), backend=broken)(torch.ones(1, 2))
    report = report_of(raised.value, rank=0)
    assert report.cause is Cause.EXCEPTION
    assert "leave compile out" in report.message


def test_a_device_that_is_full_is_told_with_who_holds_its_memory_and_without_the_allocator_s_accounts() -> None:
    told = (
        "CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 67.56 MiB "
        "is free. Process 2744 has 130.48 GiB memory in use. Including non-PyTorch memory, this process has 9.24 GiB "
        "memory in use."
    )
    accounts = (
        " Of the allocated memory 8.54 GiB is allocated by PyTorch, and 96.44 MiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    )
    report = report_of(torch.OutOfMemoryError(told + accounts), rank=0)  # as torch 2.11 said it on an H200
    assert report.message == f"OutOfMemoryError: {told}"
    assert report.traceback is not None
    assert accounts in report.traceback
