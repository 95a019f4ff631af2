"""Losses: on which devices they are counted, and when a device is handed out no more."""

from typing import Any

import pytest

from jobs.states import Outcome, StopOrder
from jobs.store import attempts
from tests.integration.store.conftest import Service
from tests.integration.store.ends import KILLED, LOST_PEERS, devices, end, order_stop, set_limits


@pytest.fixture
def service(service: Service) -> Service:
    service.register("beta")
    return service


@pytest.mark.parametrize("cause", ["killed_by_signal", "hang", "device", "communication"])
def test_three_losses_in_a_row_take_the_failing_ranks_device_away_and_no_other(service: Service, cause: str) -> None:
    placements = service.run_on("alpha", "beta", device="0,1", max_retries=9)
    for number in (1, 2, 3):
        end(service, placements[0], failure=LOST_PEERS)
        end(service, placements[1], failure={"cause": cause, "message": "it broke", "rank": 3, "time": early(number)})
        if number < 3:
            placements = [service.claim(each) for each in service.plan()]

    losses = {name: row.losses for name, row in devices(service).items() if row.losses}
    broken = devices(service)["beta", "cuda:1"]
    assert losses == {("beta", "cuda:1"): 3}
    assert broken.quarantined_at is not None
    assert broken.quarantine_reason == "3 attempts in a row were lost on it, the last one because it broke"
    assert service.plan() == []


def early(number: int) -> str:
    """A time before that of any end."""
    return f"2020-01-0{number}T00:00:00+00:00"


def test_a_loss_with_no_rank_at_fault_counts_on_all_devices_of_one_host_and_on_none_of_several(
    service: Service,
) -> None:
    (alone,) = service.run_on("alpha", device="0,1", max_retries=0)
    end(service, alone, failure=LOST_PEERS)
    for cause in ("communication", "hang"):
        for placement in service.run_on("alpha", "beta", device="0,1", max_retries=0):
            end(service, placement, failure=LOST_PEERS | {"cause": cause})

    losses = {name: row.losses for name, row in devices(service).items() if row.losses}
    assert losses == {("alpha", "cuda:0"): 1, ("alpha", "cuda:1"): 1}


@pytest.mark.parametrize(
    "failure",
    [{"cause": "lost"}, {"cause": "disk_full"}, {"cause": "interrupted"}, KILLED | {"oom_kill": True}],
    ids=["lost", "disk_full", "interrupted", "oom_kill"],
)
def test_a_loss_that_no_device_can_have_caused_counts_on_none(service: Service, failure: dict[str, Any]) -> None:
    (placement,) = service.run_on("alpha")

    end(service, placement, failure=failure | {"message": "gone", "rank": 0})

    assert not any(row.losses for row in devices(service).values())


def test_a_rank_that_died_while_its_run_was_told_to_stop_counts_on_no_device(service: Service) -> None:
    (placement,) = service.run_on("alpha")
    order_stop(service, placement, StopOrder.PREEMPTED)

    end(service, placement, failure=KILLED | {"rank": 0})

    assert not any(row.losses for row in devices(service).values())


def test_cpu_slots_are_never_taken_away(service: Service) -> None:
    (placement,) = service.run_on("alpha", device="cpu")

    end(service, placement, failure=KILLED | {"rank": 0})

    assert not any(row.losses for row in devices(service).values())


def test_a_run_that_succeeds_forgets_the_losses_of_its_devices(service: Service) -> None:
    (placement,) = service.run_on("alpha")
    end(service, placement, failure=KILLED | {"rank": 0})
    assert devices(service)["alpha", "cuda:0"].losses == 1
    (placement,) = [service.claim(each) for each in service.plan()]
    with service.database.session_scope() as session:
        attempts.set_running(session, placement, resumed_step=None)

    service.end(placement, Outcome.SUCCEEDED)

    assert devices(service)["alpha", "cuda:0"].losses == 0


def test_quarantine_can_be_switched_off(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, quarantine_after=0)
    (placement,) = service.run_on("alpha", max_retries=9)
    for _ in range(4):
        end(service, placement, failure=KILLED | {"rank": 0})
        (placement,) = [service.claim(each) for each in service.plan()]

    assert devices(service)["alpha", "cuda:0"].losses == 4
    assert devices(service)["alpha", "cuda:0"].quarantined_at is None


def test_devices_whose_process_cannot_be_killed_are_taken_away_as_their_placement_ends(service: Service) -> None:
    (placement,) = service.run_on("alpha", device="0,1")

    end(service, placement, failure=KILLED, still_used="a process of job 1 cannot be killed")

    taken = {name: row.quarantine_reason for name, row in devices(service).items() if row.quarantined_at is not None}
    assert taken == dict.fromkeys([("alpha", "cuda:0"), ("alpha", "cuda:1")], "a process of job 1 cannot be killed")
    assert service.live_leases() == []
    assert [each.host_name for each in service.plan()] == ["beta"]
