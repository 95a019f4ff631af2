"""The GPUs of this host as the driver tells of them: utilisation, memory, temperature, power."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pynvml


@dataclass(frozen=True)
class Reading:
    """What a GPU does right now; None for what it cannot tell."""

    utilisation: float | None = None
    """Percent of the time, lately, in which it computed."""
    memory_bytes: int | None = None
    """In use, by all processes."""
    temperature_c: float | None = None
    power_w: float | None = None


class Gpus(Protocol):
    """Whoever can be asked for readings."""

    def read(self, uuid: str) -> Reading | None:
        """Return what a GPU does right now, or None where it does not answer."""


class NvmlGpus:
    """The GPUs of NVIDIA's driver. Source: NVML API Reference, device queries."""

    def __init__(self) -> None:
        """Raises NVMLError where there is no such driver."""
        pynvml.nvmlInit()

    def read(self, uuid: str) -> Reading | None:
        """Return what a GPU does right now, or None where it does not answer, as after it fell off the bus."""
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError:
            return None
        utilisation = _if_told(lambda: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        # The first version counts what the driver keeps for itself as used: 615 MiB of an idle H200.
        second = pynvml.nvmlMemory_v2
        memory_bytes = _if_told(lambda: float(pynvml.nvmlDeviceGetMemoryInfo(handle, version=second).used))
        temperature_c = _if_told(lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)))
        power_w = _if_told(lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000)  # in milliwatts
        return Reading(utilisation, None if memory_bytes is None else int(memory_bytes), temperature_c, power_w)


def _if_told(ask: Callable[[], float]) -> float | None:
    """Return the answer, or None: which of these a GPU can tell differs by model, and in a slice (MIG)."""
    try:
        return ask()
    except pynvml.NVMLError:
        return None
