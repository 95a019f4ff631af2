"""The lines of the benchmark: on which devices each one trains, and what was measured of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True)
class Line:
    """One way to train the workload."""

    name: str
    devices: int
    """GPUs, or ranks on the CPU."""
    strategy: Literal["ddp", "dp"] = "ddp"
    amp: Literal["fp16", "bf16"] | None = None
    missing: str = ""
    """Why it is not measured here; empty where it is."""


@dataclass(frozen=True)
class Measured:
    """What one loop took for one line."""

    epochs_s: tuple[float, ...]
    """Seconds of each epoch: training, validation and saving."""
    accuracy: float
    """Validation accuracy after the last one."""

    @property
    def seconds(self) -> float:
        """The median epoch, the first left out."""
        return median(self.epochs_s[1:])


@dataclass(frozen=True)
class Result:
    """A line, by the trainer and by the plain loop; None where it is not measured here."""

    line: Line
    ours: Measured | None = None
    plain: Measured | None = None


def lines(device: str, *, gpus: int) -> Sequence[Line]:
    """Return all lines, for "cpu" or for "cuda" with so many GPUs."""
    if device == "cpu":
        return (
            Line("one device", 1),
            Line("DataParallel", 1, strategy="dp", missing="not on the CPU"),
            Line("DDP on 2", 2),
            Line("DDP on 4", 4),
            Line("DDP on 2, bf16", 2, amp="bf16"),  # fp16 is slower than fp32 on most processors
        )
    most = 4 if gpus >= 4 else 2

    def line(name: str, devices: int, **options: str) -> Line:
        missing = f"needs {devices} GPUs, and there {'is' if gpus == 1 else 'are'} {gpus}" if devices > gpus else ""
        return Line(name, devices, missing=missing, **options)  # type: ignore[arg-type]  # each by its own type

    return (
        line("one device", 1),
        line("one device, bf16", 1, amp="bf16"),
        line(f"DataParallel on {most}", most, strategy="dp"),
        line("DDP on 2", 2),
        line("DDP on 4", 4),
        line(f"DDP on {most}, fp16", most, amp="fp16"),
    )
