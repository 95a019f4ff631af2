"""The nodes of an attempt on several hosts, in the store: where they meet, what they continue from, whose log it is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs.database import now
from jobs.errors import StaleAttemptError
from jobs.states import Outcome
from jobs.store import copies, nodes, reports
from jobs.store.nodes import Decision, MeetingPoint
from jobs.store.reports import CheckpointFile
from jobs.tables import Checkpoint, Host, LogChunk, Placement
from tests.integration.store.conftest import Service
from trainer.run_dir import RunDir
from worker.shipping import Shipper


@pytest.fixture
def run(service: Service) -> list[Placement]:
    """A run on `alpha` and `beta`, two ranks on each."""
    service.register("beta")
    return service.run_on("alpha", "beta", device="0,1")


def meeting_point(service: Service, placement: Placement) -> MeetingPoint:
    with service.database.session_scope(read_only=True) as session:
        return nodes.meeting_point(session, placement)


def save(service: Service, placement: Placement, *, step: int, storage: str | None) -> Checkpoint:
    file = CheckpointFile(f"/runs/{step}.pt", step, 1, "0" * 64, 10, False, {}, datetime.now(UTC), storage=storage)
    with service.database.session_scope() as session:
        reports.add_checkpoint(session, placement, file)
        return reports.resumable(session, placement.job_id)[0]


def set_storages(service: Service, **by_host: list[str]) -> None:
    with service.database.session_scope() as session:
        for name, storages in by_host.items():
            session.get_one(Host, name).storages = storages


def decision(service: Service, placement: Placement) -> Decision | None:
    with service.database.session_scope(read_only=True) as session:
        return nodes.resume_decision(session, placement)


def decide(service: Service, placement: Placement, checkpoint_id: int | None) -> None:
    with service.database.session_scope() as session:
        nodes.decide_resume(session, placement, checkpoint_id)


def test_all_nodes_meet_at_the_port_of_node_0s_host(service: Service, run: list[Placement]) -> None:
    with service.database.session_scope() as session:
        session.get_one(Host, "alpha").address = "198.18.0.1"

    points = {meeting_point(service, placement) for placement in run}

    assert points == {MeetingPoint(2, "198.18.0.1", run[0].master_port or 0)}


def test_a_host_that_has_published_no_address_is_met_by_its_name(service: Service, run: list[Placement]) -> None:
    assert meeting_point(service, run[1]).master_addr == "alpha"


def test_a_run_on_one_host_takes_any_port(service: Service) -> None:
    assert meeting_point(service, service.run()) == MeetingPoint(1, "127.0.0.1", 0)


def test_what_node_0_decides_to_continue_from_is_told_to_all_nodes(service: Service, run: list[Placement]) -> None:
    saved = save(service, run[0], step=4, storage=None)
    assert decision(service, run[1]) is None

    decide(service, run[0], saved.id)

    told = decision(service, run[1])
    assert told is not None
    assert told.checkpoint is not None
    assert told.checkpoint.id == saved.id


def test_to_begin_anew_is_a_decision_too_and_stands(service: Service, run: list[Placement]) -> None:
    decide(service, run[0], None)
    decide(service, run[0], save(service, run[0], step=4, storage=None).id)

    assert decision(service, run[1]) == Decision(None)


def test_no_node_waits_for_a_decision_of_an_attempt_that_has_ended(service: Service) -> None:
    placement = service.run()
    service.end(placement, Outcome.LOST)

    with pytest.raises(StaleAttemptError):
        decision(service, placement)


def test_only_checkpoints_that_every_node_can_read_are_continued_from(service: Service, run: list[Placement]) -> None:
    set_storages(service, alpha=["of-alpha", "shared"], beta=["of-beta", "shared"])
    save(service, run[0], step=1, storage="shared")
    copied = save(service, run[0], step=2, storage="of-alpha")
    save(service, run[0], step=3, storage="of-alpha")
    save(service, run[0], step=4, storage=None)
    with service.database.session_scope() as session:
        session.get_one(Checkpoint, copied.id).copy_storage = "shared"

    with service.database.session_scope(read_only=True) as session:
        found, others = nodes.by_reach(session, run[1], reports.resumable(session, run[1].job_id))

    assert [checkpoint.step for checkpoint in found] == [2, 1]
    assert [(each.checkpoint.step, each.cannot) for each in others] == [(4, ["alpha", "beta"]), (3, ["beta"])]


def test_a_host_that_has_not_looked_since_a_checkpoint_was_placed_or_copied_may_be_able_to_read_it(
    service: Service, run: list[Placement]
) -> None:
    set_storages(service, alpha=["of-alpha"], beta=["of-beta"])
    saved = save(service, run[0], step=1, storage="of-alpha")

    def silent() -> list[str]:
        with service.database.session_scope(read_only=True) as session:
            _, (beyond,) = nodes.by_reach(session, run[1], reports.resumable(session, run[1].job_id))
        assert beyond.cannot == ["beta"]
        return list(beyond.silent)

    def look() -> None:
        with service.database.session_scope() as session:
            session.get_one(Host, "beta").looked_at = now(session)

    assert silent() == ["beta"]
    look()
    assert silent() == []

    with service.database.session_scope() as session:
        copies.set_copied(session, run[0], saved, url="/new/1.pt", storage="new")
    assert silent() == ["beta"], "it may have the folder of the copy"
    look()
    assert silent() == []


def test_a_run_on_one_host_sees_for_itself_what_it_can_read(service: Service) -> None:
    placement = service.run()
    save(service, placement, step=4, storage=None)

    with service.database.session_scope(read_only=True) as session:
        found, others = nodes.by_reach(session, placement, reports.resumable(session, placement.job_id))

    assert [checkpoint.step for checkpoint in found] == [4]
    assert not others


def test_the_output_of_the_second_hosts_ranks_is_told_under_their_global_numbers(
    service: Service, run: list[Placement], tmp_path: Path
) -> None:
    for placement, words in zip(run, (("zero\n", "one\n"), ("two\n", "three\n")), strict=True):
        placement.run_dir = str(tmp_path / placement.host_name)
        run_dir = RunDir(Path(placement.run_dir))
        run_dir.ranks.mkdir(parents=True)
        for local_rank, word in enumerate(words):
            run_dir.log(local_rank).write_text(word)
        shipper = Shipper(service.database, placement)
        shipper.ship()
        with run_dir.log(1).open("a") as log:
            log.write("again\n")
        shipper.ship()

    with service.database.session_scope(read_only=True) as session:
        chunks = session.execute(select(LogChunk.rank, LogChunk.text).order_by(LogChunk.rank, LogChunk.id)).all()
    assert [tuple(chunk) for chunk in chunks] == [
        (0, "zero\n"),
        *[(1, "one\n"), (1, "again\n")],
        (2, "two\n"),
        *[(3, "three\n"), (3, "again\n")],
    ]
