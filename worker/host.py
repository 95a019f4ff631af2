"""This host: its address, its devices, and what its trainer can run."""

import json
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import replace

import pynvml
import structlog
from sqlalchemy import make_url

from jobs.settings import Settings
from jobs.store.hosts import DeviceInfo

LOOPBACK = "127.0.0.1"

log = structlog.get_logger()

_UUID = "GPU-"
"""What the UUID of a GPU begins with."""


def find_devices(settings: Settings) -> list[DeviceInfo]:
    """Return the devices of this host: CUDA in the worker's own view, or simulated, `mps`, and CPU slots.

    Raises ValueError where simulated devices are asked for beside real ones, whose names they would take.
    """
    gpus = _visible_gpus()
    if gpus and settings.simulated_devices:
        raise ValueError(
            f"simulated_devices: this host has {len(gpus)} real CUDA device{'s' if len(gpus) > 1 else ''}; "
            "unset RANKZERO_SIMULATED_DEVICES, which is for hosts with none"
        )
    simulated = [
        DeviceInfo(f"cuda:{index}", "cuda", model="simulated", simulated=True)
        for index in range(settings.simulated_devices)
    ]
    mps = [DeviceInfo("mps", "mps")] if sys.platform == "darwin" and platform.machine() == "arm64" else []
    slots = settings.cpu_slots if settings.cpu_slots is not None else os.cpu_count() or 1
    return [*gpus, *simulated, *mps, *(DeviceInfo(f"cpu:{index}", "cpu") for index in range(slots))]


def find_address(settings: Settings) -> str:
    """Return the address at which other hosts reach this one: the one set, or else that which the database sees."""
    if settings.address is not None:
        return settings.address
    url = make_url(settings.database_url)
    server = url.host or url.query.get("host")
    if not isinstance(server, str) or server.startswith("/"):
        return LOOPBACK  # a database file, or the socket of one here: the service is on this machine alone
    try:
        family, kind, _, _, target = socket.getaddrinfo(server, url.port or 5432, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)  # sends nothing: it only chooses the way there
            return str(probe.getsockname()[0])
    except OSError as error:
        log.warning("address_unknown", database_host=server, error=str(error))
        return LOOPBACK


def read_catalog() -> dict[str, object] | None:
    """Ask the trainer, in a process of its own, what it can run; None, and a log line, where it cannot say."""
    command = [sys.executable, "-m", "trainer", "catalog"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=300)
        catalog = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        stderr = getattr(error, "stderr", None) or b""
        log.error("catalog_unknown", error=str(error), stderr=stderr.decode(errors="replace")[-2000:])
        return None
    if answer.stderr:  # such as a package's recipe that it had to leave out
        log.warning("catalog_incomplete", stderr=answer.stderr.decode(errors="replace")[-2000:])
    return catalog if isinstance(catalog, dict) else {}  # refused where it is published, with what is wrong


def _visible_gpus() -> list[DeviceInfo]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to this worker, numbered as it sees them."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    gpus = []
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                gpus.append(_describe(index))
            except pynvml.NVMLError as error:  # one that fell off the bus must not cost the host the others
                log.error("gpu_unusable", index=index, error=str(error))
                gpus.append(DeviceInfo(name="", kind="unusable", driver_index=index))
    finally:
        pynvml.nvmlShutdown()
    return numbered(visible(gpus, os.environ.get("CUDA_VISIBLE_DEVICES")))


def visible(gpus: list[DeviceInfo], mask: str | None) -> list[DeviceInfo]:
    """Apply CUDA_VISIBLE_DEVICES as the CUDA driver does: in its order, and no further than the first bad entry.

    All entries are of the first one's kind: numbers, which count in PCI order as NVML does, or UUIDs, of which the
    beginning will do. One that names a GPU once more hides all of them: the driver then refuses to start. Source: CUDA
    C++ Programming Guide, environment variables; what that leaves open was tried on driver 580.
    """
    if mask is None:
        return gpus
    named = _by_uuid if mask.startswith(_UUID) else _by_number
    chosen: list[DeviceInfo] = []
    for entry in mask.split(","):
        gpu = named(gpus, entry)
        if gpu is None:
            break
        if gpu in chosen:
            return []
        chosen.append(gpu)
    return chosen


def _by_uuid(gpus: list[DeviceInfo], entry: str) -> DeviceInfo | None:
    start = entry.lower()
    found = [gpu for gpu in gpus if len(entry) > len(_UUID) and gpu.uuid and gpu.uuid.lower().startswith(start)]
    return found[0] if len(found) == 1 else None


def _by_number(gpus: list[DeviceInfo], entry: str) -> DeviceInfo | None:
    number = re.match(r"\s*\+?([0-9]+)", entry)  # as C's strtol reads it, which leaves alone what follows
    return gpus[int(number[1])] if number and int(number[1]) < len(gpus) else None


def numbered(gpus: list[DeviceInfo]) -> list[DeviceInfo]:
    """Name visible GPUs as the CUDA runtime numbers them for this worker; one that cannot be used keeps its number."""
    return [replace(gpu, name=f"cuda:{index}") for index, gpu in enumerate(gpus) if gpu.kind == "cuda"]


def _describe(index: int) -> DeviceInfo:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    try:
        memory_bytes = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        memory_bytes = None  # a GPU that shares the host's memory has none of its own
    return DeviceInfo(
        name="",
        kind="cuda",
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        driver_index=index,
        model=_text(pynvml.nvmlDeviceGetName(handle)),
        memory_bytes=memory_bytes,
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
