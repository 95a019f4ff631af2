"""The machine that something was measured on, in words."""

import os
import platform
from pathlib import Path


def machine() -> str:
    """Return its cores, processor, GPUs, Python and torch in one line; imports torch."""
    import torch

    named = (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name"))
    cpu = next(named, platform.machine())
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    gpus = f", {', '.join(devices)}" if devices else ", no GPU"
    return f"{os.cpu_count()} cores of {cpu}{gpus}, Python {platform.python_version()}, torch {torch.__version__}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
