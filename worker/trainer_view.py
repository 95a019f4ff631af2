"""How a trainer sees the devices of its placement: the variables it starts with, the names it uses, what they are."""

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


def describe(devices: Sequence[DeviceInfo], *, host_name: str) -> list[str]:
    """Return a line for each device that says which one it is, by every number it goes by, for who reads the run's log.

    A GPU has three: the run's own (`cuda:0`, …), its worker's, and the driver's, which `nvidia-smi` prints.
    """
    return [
        ", ".join([f"{own} of this run is {device.name} of host {host_name}", *_identity(device)])
        for own, device in zip(device_names(devices), devices, strict=True)
    ]


def _identity(device: DeviceInfo) -> list[str]:
    if device.simulated:
        return ["simulated"]
    number = [] if device.driver_index is None else [f"GPU {device.driver_index} of the driver"]
    return [*number, *(text for text in (device.uuid, device.model) if text)]
