"""Telemetry: readings of GPUs, and the stretches of time that they are summed up in."""

from datetime import UTC, datetime

import pynvml
import pytest

from worker.gpus import NvmlGpus, Reading
from worker.telemetry import sum_up

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()


def test_a_stretch_has_the_mean_of_what_varies_and_the_highest_of_what_limits() -> None:
    readings = [
        ("GPU-1", NOON + 5, Reading(utilisation=10, memory_bytes=100, temperature_c=60, power_w=300)),
        ("GPU-1", NOON + 15, Reading(utilisation=90, memory_bytes=400, temperature_c=70, power_w=500)),
        ("GPU-1", NOON + 59, Reading(utilisation=20, memory_bytes=200, temperature_c=65, power_w=400)),
    ]

    (stretch,) = sum_up(readings, stretch_s=60)

    assert stretch.at == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    assert (stretch.samples, stretch.utilisation, stretch.power_w) == (3, 40, 400)
    assert (stretch.memory_bytes, stretch.temperature_c) == (400, 70)


def test_each_gpu_and_each_stretch_is_summed_up_by_itself() -> None:
    readings = [(uuid, NOON + at_s, Reading(power_w=at_s)) for at_s in (0, 59, 60) for uuid in ("GPU-2", "GPU-1")]

    summed = [(each.uuid, each.at.minute, each.samples, each.power_w) for each in sum_up(readings, stretch_s=60)]

    assert summed == [("GPU-1", 0, 2, 29.5), ("GPU-1", 1, 1, 60), ("GPU-2", 0, 2, 29.5), ("GPU-2", 1, 1, 60)]


def test_what_a_gpu_cannot_tell_stays_unknown_and_one_silence_does_not_spoil_the_rest() -> None:
    readings = [("GPU-1", NOON, Reading(utilisation=50)), ("GPU-1", NOON + 1, Reading())]

    (stretch,) = sum_up(readings, stretch_s=60)

    assert stretch.utilisation == 50
    assert (stretch.memory_bytes, stretch.temperature_c, stretch.power_w) == (None, None, None)


def test_the_gpus_of_this_machine_tell_what_they_do() -> None:
    try:
        gpus = NvmlGpus()
    except pynvml.NVMLError as error:
        pytest.skip(f"needs a GPU: {error}")
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))

    reading = gpus.read(uuid)

    assert gpus.read("GPU-00000000-0000-0000-0000-000000000000") is None
    assert reading is not None
    assert reading.memory_bytes is not None
    assert reading.memory_bytes > 0
    for value, most in ((reading.utilisation, 100), (reading.temperature_c, 150), (reading.power_w, 5000)):
        assert value is None or 0 <= value <= most
