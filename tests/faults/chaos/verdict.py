"""The verdict on the chaos run: every law, and every job held against what it must have computed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select

from jobs.states import Outcome, State
from jobs.tables import Attempt, Job, JobEvent, Placement, SubmissionKey
from tests import laws
from tests.faults.chaos.users import Users
from tests.faults.chaos.work import Work
from tests.faults.chaos.world import World
from tests.faults.matrix.lane import load_state
from tests.faults.matrix.logs import Logs


def assert_all_is_well(world: World, users: Users, *, work: Sequence[Work], reference: int) -> None:
    """Assert it of the work, all of which is over; `reference` is a run of the digits that nothing struck."""
    assert not users.broken, "\n".join(users.broken)
    not_once = {each.key: 1 for each in work}.items() ^ Counter(each.key for each in users.accepted.values()).items()
    assert not not_once, f"accepted, but not once each: {not_once}"
    _assert_one_job_for_each_key(world, users, reference)
    ended = _assert_ended_once(world, users)
    _assert_cancels_were_kept(world, users)
    Logs(world.folder).assert_no_defect_was_told()
    world.service.assert_laws_held(*sorted(users.accepted), reference)
    with world.service.database.session_scope(read_only=True) as session:
        placements = session.scalars(select(Placement).order_by(Placement.id)).all()
    completed = [each for each in placements if each.completed]
    assert world.watch.seen(completed) > len(completed) / 2, "the witness was blind"
    world.watch.assert_nothing_ran_beside(placements)
    for job_id, each in users.accepted.items():
        _assert_trained(world, job_id, each, ended[job_id], reference)


def _assert_one_job_for_each_key(world: World, users: Users, reference: int) -> None:
    """What was answered 201 is there, and nothing is that was not."""
    with world.service.database.session_scope(read_only=True) as session:
        stored = set(session.scalars(select(Job.id)))
        keys = dict(session.execute(select(SubmissionKey.key, SubmissionKey.made)).all())
    told = {*users.accepted, reference}
    assert stored == told, f"stored, or told, but not both: jobs {sorted(stored ^ told)}"
    not_both = keys.items() ^ {work.key: f"jobs/{job_id}" for job_id, work in users.accepted.items()}.items()
    assert not not_both, f"stored, or told, but not both: {sorted(not_both)}"


def _assert_ended_once(world: World, users: Users) -> dict[int, State]:
    """Each job succeeded, or was cancelled by somebody who asked for it, once, and nothing came after that."""
    with world.service.database.session_scope(read_only=True) as session:
        ended = {job_id: State(state) for job_id, state in session.execute(select(Job.id, Job.state))}
        moves = session.execute(
            select(JobEvent.job_id, JobEvent.from_state, JobEvent.to_state)
            .where(JobEvent.kind == "state")
            .order_by(JobEvent.id)
        ).all()
        succeeded = Counter(session.scalars(select(Attempt.job_id).where(Attempt.outcome == Outcome.SUCCEEDED)))
    states: dict[int, str | None] = {}
    for job_id, source, target in moves:
        assert source == states.get(job_id, State.QUEUED), f"job {job_id} went from {source}, and was elsewhere"
        states[job_id] = target
    for job_id in users.accepted:
        if not (ended[job_id] == State.CANCELLED and job_id in users.cancelled):
            assert ended[job_id] == State.SUCCEEDED, f"job {job_id}: {world.service.story(job_id)}"
        assert states[job_id] == ended[job_id], f"job {job_id} tells of another end than its events"
        assert succeeded[job_id] == (ended[job_id] == State.SUCCEEDED), (
            f"job {job_id} succeeded {succeeded[job_id]} times"
        )
    return ended


def _assert_cancels_were_kept(world: World, users: Users) -> None:
    """No job was tried once more after somebody was told that it is cancelled, or will be."""
    for job_id, last_attempt in users.last_attempts.items():
        tried = len(world.service.attempts(job_id))
        assert tried == last_attempt, (
            f"job {job_id} was cancelled in attempt {last_attempt}, and has {tried}; {world.service.story(job_id)}"
        )


def _assert_trained(world: World, job_id: int, work: Work, ended: State, reference: int) -> None:
    """Its series is, step by step, the one that such a job has, and so is its last state; cancelled, its beginning."""
    series = laws.training_series(world.service.metrics(job_id))
    whole = work.series if work.steps is not None else laws.training_series(world.service.metrics(reference))
    if ended != State.SUCCEEDED:
        assert set(series) <= set(whole), f"job {job_id} was cancelled, and tells of another training"
        return
    assert series == whole, f"job {job_id} tells of another training"
    state = work.state if work.steps is not None else _last_state(world, reference)
    assert _last_state(world, job_id) == state, f"job {job_id} has another state at its end"


def _last_state(world: World, job_id: int) -> object:
    furthest = max(world.service.checkpoints(job_id), key=lambda each: each.step)
    return load_state(Path(furthest.path))
