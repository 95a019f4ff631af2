"""The doctor of a host: what every process of the service needs, and devices, trainer, disk and checkpoint root.

    python -m worker.doctor

It prints what `python -m jobs.doctor` does, and more, in the same form.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs import doctor
from jobs.doctor import Finding, Verdict
from jobs.errors import InvalidSettingsError
from jobs.settings import Settings, get_settings
from jobs.storage_marks import MARK
from jobs.store.hosts import DeviceInfo
from worker import host, remote_files, storage
from worker.fitness import write_error

TORCH = (
    "import json, torch; "
    "print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.device_count(), torch.cuda.is_available()]))"
)
"""In a process of its own, as everything that imports torch: version, that of its CUDA, devices, whether they work."""
TORCH_TIMEOUT_S = 120
GIB = 1024**3


def examine() -> Iterator[Finding]:
    """Look at everything that a host needs, one thing after the other."""
    yield from doctor.examine()
    try:
        settings = get_settings()
    except InvalidSettingsError:
        return  # it was told
    devices: list[DeviceInfo] = []
    try:
        devices = host.find_devices(settings)
    except ValueError as error:
        yield Finding("devices", Verdict.BAD, str(error))
    else:
        yield _devices(devices)
    yield _torch(gpus=sum(device.kind == "cuda" and not device.simulated for device in devices))
    yield _disk(settings)
    yield _checkpoint_root(settings)


def _devices(devices: Sequence[DeviceInfo]) -> Finding:
    cuda = [device for device in devices if device.kind == "cuda"]
    slots = sum(device.kind == "cpu" for device in devices)
    models = ", ".join(dict.fromkeys(device.model or "of no known model" for device in cuda))
    shown = [f"{len(cuda)} CUDA ({models})"] if cuda else []
    shown += ["mps"] if any(device.kind == "mps" for device in devices) else []
    shown += [f"{slots} CPU slots"] if slots else []
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not devices:
        return Finding(
            "devices", Verdict.BAD, "none", "unset RANKZERO_CPU_SLOTS=0, or see whether `nvidia-smi -L` works"
        )
    if mask and not cuda:
        to_do = "correct it: `nvidia-smi -L` lists the GPUs"
        return Finding("devices", Verdict.WARN, f"no GPU that CUDA_VISIBLE_DEVICES={mask} names", to_do)
    return Finding("devices", Verdict.OK, ", ".join(shown))


def _torch(*, gpus: int) -> Finding:
    command = [sys.executable, "-c", TORCH]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TORCH_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
        return Finding("torch", Verdict.BAD, last, "pip install 'rankzero[trainer]'")
    except subprocess.TimeoutExpired:
        to_do = "look at what reads its files so slowly, or what the GPU's driver is at (`nvidia-smi`)"
        return Finding("torch", Verdict.BAD, f"not imported after {TORCH_TIMEOUT_S} s", to_do)
    version, cuda, count, works = json.loads(done.stdout.splitlines()[-1])
    built = f"torch {version}, " + (f"CUDA {cuda}" if cuda else "built without CUDA")
    if gpus == 0 or (works and count == gpus):
        return Finding("torch", Verdict.OK, built if gpus == 0 else f"{built}, which sees all {gpus} GPUs")
    seen = f"{built}, which sees {count if works else 0} of {gpus} GPUs"
    return Finding("torch", Verdict.BAD, seen, "install the torch that fits the driver: pytorch.org/get-started")


def _disk(settings: Settings) -> Finding:
    root = settings.run_root
    error = _write_error(root)
    if error is not None:
        to_do = "set RANKZERO_RUN_ROOT to a folder that this account may write"
        return Finding("disk", Verdict.BAD, f"run root {root}: {error.strerror}", to_do)
    free = storage.free_bytes(_nearest(root))
    seen = f"run root {root}: {free / GIB:.1f} GiB free"
    if free >= settings.min_free_bytes:
        return Finding("disk", Verdict.OK, seen)
    wanted = f"{settings.min_free_bytes / GIB:.1f} GiB (RANKZERO_MIN_FREE_BYTES)"
    return Finding("disk", Verdict.BAD, f"{seen}; this host gets no jobs below {wanted}", "make room")


def _checkpoint_root(settings: Settings) -> Finding:
    root = settings.checkpoint_root
    if root is None:
        return Finding("checkpoint root", Verdict.OK, "none: jobs continue where they were saved, on this host alone")
    try:
        if remote_files.is_url(root):
            # As the worker's start does, with the same content: only a write shows that one may.
            remote_files.write(f"{root.rstrip('/')}/{MARK}", f"{storage.storage_of_url(root)}\n".encode())
        elif (error := _write_error(remote_files.local(root))) is not None:
            raise error
    except OSError as error:
        to_do = "mend that, or correct RANKZERO_CHECKPOINT_ROOT"
        return Finding("checkpoint root", Verdict.BAD, f"{root}: {error.strerror}", to_do)
    return Finding("checkpoint root", Verdict.OK, f"{root} can be written")


def _write_error(folder: Path) -> OSError | None:
    """The error by which nothing can be written to a folder, or where there is none yet, by which it cannot be made."""
    return write_error(_nearest(folder))


def _nearest(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


if __name__ == "__main__":
    doctor.tell(examine())
