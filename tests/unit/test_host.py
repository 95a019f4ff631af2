"""A host's devices: which GPUs a worker has, and how a trainer sees those of its placement."""

import os

import pytest

from jobs.settings import Settings
from jobs.store.hosts import DeviceInfo
from worker import trainer_view
from worker.host import find_devices, numbered, visible

GPUS = [DeviceInfo("", "cuda", uuid=f"GPU-{index}000", driver_index=index) for index in range(4)]


@pytest.mark.parametrize(
    ("mask", "uuids"),
    [
        (None, ["GPU-0000", "GPU-1000", "GPU-2000", "GPU-3000"]),
        ("", []),
        ("3,1", ["GPU-3000", "GPU-1000"]),
        (" 2 , 0 ", ["GPU-2000", "GPU-0000"]),
        ("GPU-2,GPU-0", ["GPU-2000", "GPU-0000"]),
        ("GPU-2,0", ["GPU-2000"]),  # all entries are of one kind
        ("2,GPU-0", ["GPU-2000"]),
        ("GPU-,1", []),  # names four devices at once
        ("1,7,0", ["GPU-1000"]),  # the runtime stops at the first entry that names nothing
        ("1,1,0", []),  # the driver starts with none, rather than with one twice
        ("GPU-1,GPU-10", []),
        ("1,7,1", ["GPU-1000"]),
        ("+1,02x", ["GPU-1000", "GPU-2000"]),
        ("-1", []),
        ("NoDevFiles", []),
    ],
)
def test_a_worker_sees_the_gpus_that_its_mask_names_in_that_order(mask: str | None, uuids: list[str]) -> None:
    assert [gpu.uuid for gpu in visible(GPUS, mask)] == uuids


def test_a_visible_gpu_has_the_worker_s_number_and_the_driver_s() -> None:
    gpus = numbered(visible(GPUS, "3,1"))
    assert [(gpu.name, gpu.driver_index, gpu.uuid) for gpu in gpus] == [
        ("cuda:0", 3, "GPU-3000"),
        ("cuda:1", 1, "GPU-1000"),
    ]


def test_a_gpu_that_cannot_be_used_keeps_its_number_to_itself() -> None:
    broken = DeviceInfo("", "unusable", driver_index=1)
    assert [(gpu.name, gpu.driver_index) for gpu in numbered(visible([GPUS[0], broken, GPUS[2]], None))] == [
        ("cuda:0", 0),
        ("cuda:2", 2),
    ]


def test_a_job_gets_the_same_physical_device_whatever_the_worker_calls_it() -> None:
    chosen = visible(GPUS, "3,1")
    placement = [DeviceInfo("cuda:1", "cuda", uuid=chosen[1].uuid)]
    assert trainer_view.environment(placement) == {"CUDA_VISIBLE_DEVICES": "GPU-1000"}
    assert trainer_view.device_names(placement) == ("cuda:0",)


def test_rank_order_is_the_order_of_the_placement() -> None:
    placement = [DeviceInfo(f"cuda:{index}", "cuda", uuid=GPUS[index].uuid) for index in (2, 0)]
    assert trainer_view.environment(placement) == {"CUDA_VISIBLE_DEVICES": "GPU-2000,GPU-0000"}
    assert trainer_view.device_names(placement) == ("cuda:0", "cuda:1")


def test_simulated_devices_keep_their_names_and_show_the_trainer_no_gpu() -> None:
    placement = [DeviceInfo(f"cuda:{index}", "cuda", simulated=True) for index in (10, 11)]
    assert trainer_view.environment(placement) == {"CUDA_VISIBLE_DEVICES": ""}
    assert trainer_view.device_names(placement) == ("cuda:10", "cuda:11")


def test_cpu_slots_are_cpu_to_the_trainer() -> None:
    placement = [DeviceInfo(f"cpu:{index}", "cpu") for index in (3, 5)]
    assert trainer_view.environment(placement) == {"CUDA_VISIBLE_DEVICES": ""}
    assert trainer_view.device_names(placement) == ("cpu", "cpu")


def test_a_run_is_told_which_devices_its_own_are() -> None:
    gpus = [DeviceInfo("cuda:2", "cuda", uuid="GPU-7", driver_index=5, model="H200"), DeviceInfo("cuda:0", "cuda")]
    others = [DeviceInfo("cuda:10", "cuda", simulated=True), DeviceInfo("cuda:11", "cuda", simulated=True)]
    assert trainer_view.describe(gpus, host_name="alpha") == [
        "cuda:0 of this run is cuda:2 of host alpha, GPU 5 of the driver, GPU-7, H200",
        "cuda:1 of this run is cuda:0 of host alpha",
    ]
    assert trainer_view.describe(others, host_name="alpha") == [
        "cuda:10 of this run is cuda:10 of host alpha, simulated",
        "cuda:11 of this run is cuda:11 of host alpha, simulated",
    ]
    assert trainer_view.describe([DeviceInfo("cpu:3", "cpu")], host_name="a") == ["cpu of this run is cpu:3 of host a"]


def test_a_host_has_its_simulated_devices_and_a_cpu_slot_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # also where there are real ones
    found = find_devices(Settings(simulated_devices=2))
    assert [device.name for device in found if device.simulated] == ["cuda:0", "cuda:1"]
    assert len([device for device in found if device.kind == "cpu"]) == os.cpu_count()


def test_the_number_of_cpu_slots_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [device.name for device in find_devices(Settings(cpu_slots=1)) if device.kind == "cpu"] == ["cpu:0"]
