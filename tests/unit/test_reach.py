"""Which hosts a job can continue on: those that can read its checkpoint."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobs.store.reach import Reach, Readers, Saved
from jobs.tables import Host

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
ALPHA = Host(name="alpha", storages=["disk-a", "share"])
BETA = Host(name="beta", storages=["disk-b", "share"])
GAMMA = Host(name="gamma", storages=["disk-c"])
EVERYBODY = ["alpha", "beta", "gamma"]


def saved(step: int, storage: str | None, *, copy: str | None = None, host: str = "alpha") -> Saved:
    return Saved(id=step + 1000, job_id=7, step=step, host_name=host, storage=storage, copy_storage=copy)


def readers(*in_contact: str) -> Readers:
    return Readers([ALPHA, BETA, GAMMA], in_contact, NOON)


def test_a_job_waits_for_the_host_that_has_its_checkpoint_and_says_so() -> None:
    reach = readers(*EVERYBODY).of_own([saved(500, "disk-a"), saved(400, "share")], nodes=1)

    assert reach == Reach(500, frozenset({"alpha"}), "its checkpoint of step 500 is on alpha only")


def test_a_copy_in_a_shared_storage_can_be_read_wherever_that_is() -> None:
    reach = readers(*EVERYBODY).of_own([saved(500, "disk-a", copy="share")], nodes=1)

    assert reach.hosts == frozenset({"alpha", "beta"})
    assert reach.note == "its checkpoint of step 500 is on alpha and beta only"


def test_a_job_whose_checkpoint_every_host_in_contact_can_read_may_go_anywhere() -> None:
    assert readers("alpha", "beta").of_own([saved(500, "share")], nodes=1) == Reach(500, None, None)


def test_a_job_goes_on_from_an_earlier_checkpoint_once_nobody_in_contact_can_read_the_last() -> None:
    checkpoints = [saved(500, "disk-a"), saved(400, "disk-c")]

    lost = "its checkpoint of step 500 is on alpha only, and no such host is in contact"
    continued = Reach(400, frozenset({"gamma"}), f"{lost}, so it continues from step 400, which is on gamma only")
    assert readers("beta", "gamma").of_own(checkpoints, nodes=1) == continued
    assert readers("gamma").of_own(checkpoints, nodes=1) == Reach(400, None, f"{lost}, so it continues from step 400")
    assert readers("beta").of_own(checkpoints, nodes=1) == Reach(0, None, f"{lost}, so it begins anew")


def test_every_node_of_a_gang_has_to_read_the_checkpoint() -> None:
    checkpoints = [saved(500, "disk-a"), saved(400, "share")]

    assert readers(*EVERYBODY).of_own(checkpoints, nodes=2).step == 400
    lost = "its checkpoint of step 500 is on alpha only, and fewer than 2 such hosts are in contact"
    assert readers(*EVERYBODY).of_own(checkpoints[:1], nodes=2) == Reach(0, None, f"{lost}, so it begins anew")


def test_a_host_that_has_not_looked_since_a_checkpoint_got_its_place_is_waited_for_but_not_for_ever() -> None:
    copied = replace(saved(500, "disk-a", copy="new"), placed_at=NOON)

    def reach(*, looked_s: float | None, now_s: float, nodes: int = 2) -> Reach:
        looked_at = None if looked_s is None else NOON + timedelta(seconds=looked_s)
        beta = Host(name="beta", storages=["disk-b"], looked_at=looked_at)
        return Readers([ALPHA, beta], ["alpha", "beta"], NOON + timedelta(seconds=now_s)).of_own([copied], nodes=nodes)

    assert reach(looked_s=-1, now_s=5) == Reach(
        500,
        frozenset({"alpha"}),
        "its checkpoint of step 500 is on alpha only as far as is known (beta has not said yet whether it can be read "
        "there)",
    )
    assert reach(looked_s=None, now_s=5).hosts == frozenset({"alpha"})
    assert reach(looked_s=1, now_s=5).step == 0, "it has looked, and cannot read it"
    assert reach(looked_s=None, now_s=61).step == 0
    assert reach(looked_s=None, now_s=5, nodes=3).step == 0, "its answer would not help"
    assert reach(looked_s=None, now_s=5, nodes=1).note == "its checkpoint of step 500 is on alpha only"


def test_a_checkpoint_from_before_storages_had_ids_is_where_it_was_saved() -> None:
    reach = readers(*EVERYBODY).of_own([saved(500, None, host="gamma")], nodes=1)

    assert reach.hosts == frozenset({"gamma"})


def test_a_job_that_starts_from_anothers_checkpoint_waits_for_it_also_while_its_host_is_away() -> None:
    reach = readers("beta", "gamma").of_another(saved(500, "disk-a"))

    assert reach.hosts == frozenset({"alpha"})
    assert reach.note == "checkpoint 1500 of job 7, which it starts from, is on alpha only"


def test_a_start_from_anothers_checkpoint_that_every_host_can_read_is_free_to_go_anywhere() -> None:
    assert readers("alpha", "beta").of_another(saved(500, "share")) == Reach(0, None, None)
