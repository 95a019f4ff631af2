"""How a trainer sees the devices of its placement: the variables it starts with, and the names it uses."""

from collections.abc import Sequence

from jobs.store.hosts import DeviceInfo


def environment(devices: Sequence[DeviceInfo]) -> dict[str, str]:
    """Return the variables that show a trainer exactly these devices, by the driver's own names for them.

    A CUDA index means something else in each process; a UUID is the same device in a retry and in every view.
    """
    real = [device.uuid for device in devices if device.kind == "cuda" and not device.simulated]
    return {"CUDA_VISIBLE_DEVICES": ",".join(uuid for uuid in real if uuid)}


def device_names(devices: Sequence[DeviceInfo]) -> tuple[str, ...]:
    """Return the devices as the trainer numbers them, given `environment`; simulated ones keep their names."""
    if all(device.simulated for device in devices):
        return tuple(device.name for device in devices)
    return tuple(f"cuda:{index}" if device.kind == "cuda" else device.kind for index, device in enumerate(devices))
