"""What a benchmark prints: lines with their figures, and the machine they were measured on."""

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One measured thing, and its peer where it has one."""

    what: str
    figure: str
    peer: str = ""
    ratio: float | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(values: Sequence[float], unit: str) -> str:
    """Median with the smallest and the largest value."""
    return f"{statistics.median(values):.3g} {unit} ({min(values):.3g} to {max(values):.3g}, n={len(values)})"


def machine() -> str:
    """The machine in words."""
    import torch

    cpu = next(
        (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    gpus = f", {', '.join(devices)}" if devices else ", no GPU"
    return f"{os.cpu_count()} cores of {cpu}{gpus}, Python {platform.python_version()}, torch {torch.__version__}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
