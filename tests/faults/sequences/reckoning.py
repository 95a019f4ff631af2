"""The reckoning: after each call, what the database holds is held against the model and against the laws."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from jobs.states import TRANSITIONS, State, StopOrder
from tests.faults.sequences.ledger import Ledger, Row, parsed
from tests.faults.sequences.model import ModelHost, ModelJob, Share

JOBS = "SELECT id, state, intent, attempt, retries, max_retries, priority, not_before, progress, finished_at FROM jobs"
MOVES = "SELECT id, job_id, from_state, to_state FROM job_events WHERE kind = 'state' AND id > {after} ORDER BY id"
ATTEMPTS = "SELECT job_id, number, ended_at, stop_order FROM attempts ORDER BY job_id, number"
PLACEMENTS = "SELECT id, job_id, attempt, created_at, ended_at, heartbeat_at, supervisor FROM placements"
LEASES = "SELECT device_id, placement_id, acquired_at, released_at FROM leases ORDER BY acquired_at, id"
REPORTS = {
    "metrics": "SELECT job_id, attempt, step FROM metrics",
    "checkpoint": "SELECT job_id, attempt, step FROM checkpoints",
    "epoch": "SELECT job_id, attempt, detail FROM job_events WHERE kind = 'epoch'",
}
BEST = "SELECT job_id, attempt, step FROM checkpoints WHERE best"
DEVICES = "SELECT id, host_name, name, losses, quarantined_at FROM devices"


class Reckoning:
    """Compares one sequence's model with the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last_event = 0
        self._moves: dict[int, list[tuple[str | None, str | None]]] = {}

    def take_stop_orders(self, jobs: dict[int, ModelJob]) -> None:
        """Learn from the ledger whom a plan stopped: it may be only for a job that comes before it."""
        for job_id, number, ended_at, order in self._ledger.rows(ATTEMPTS):
            job = jobs[job_id]
            if order != StopOrder.PREEMPTED or job.order is not None or ended_at or number != job.attempt:
                continue
            assert job.preemptible, f"job {job_id} may not be preempted"
            ahead = [each for each in jobs.values() if each.may_start() and each.priority > job.priority]
            assert ahead, f"job {job_id} was stopped for nobody"
            job.order = StopOrder.PREEMPTED

    def compare(self, jobs: dict[int, ModelJob], shares: Iterable[Share], fleet: dict[str, ModelHost]) -> None:
        """Assert that the database is what the model says, and breaks no law."""
        self._compare_jobs(jobs)
        self._compare_moves(jobs)
        self._compare_attempts(jobs)
        self._compare_reports(jobs)
        ends = self._compare_placements(shares)
        self._compare_leases(shares, ends, self._compare_devices(fleet))

    def _compare_jobs(self, jobs: dict[int, ModelJob]) -> None:
        rows = self._ledger.rows(JOBS)
        assert {row[0] for row in rows} == set(jobs), "a job was lost, or came from nowhere"
        for job_id, state, intent, attempt, retries, max_retries, priority, rests_until, progress, finished in rows:
            job = jobs[job_id]
            is_so = (state, intent, attempt, retries, priority)
            assert is_so == (job.state, job.intent, job.attempt, job.retries, job.priority), f"job {job_id}: {is_so}"
            assert retries <= max_retries
            assert (finished is not None) == State(state).is_terminal
            assert not job.rests or rests_until is not None
            step = (parsed(progress) or {}).get("step")
            assert step == job.step, f"job {job_id} has the progress {step} of another attempt, not {job.step}"

    def _compare_moves(self, jobs: dict[int, ModelJob]) -> None:
        """Every change of state is an event, and no event tells of another."""
        for event_id, job_id, source, to in self._ledger.rows(MOVES.format(after=self._last_event)):
            self._last_event = event_id
            assert State(to) in TRANSITIONS[State(source)]
            self._moves.setdefault(job_id, []).append((source, to))
        for job in jobs.values():
            assert self._moves.get(job.id, []) == job.moves

    def _compare_attempts(self, jobs: dict[int, ModelJob]) -> None:
        """Attempts are numbered without a gap, and only the last of a job may be open."""
        numbers: dict[int, int] = {}
        for job_id, number, ended_at, order in self._ledger.rows(ATTEMPTS):
            job = jobs[job_id]
            assert number == numbers.get(job_id, 0) + 1
            numbers[job_id] = number
            is_last = number == job.attempt
            assert (ended_at is None) == (is_last and job.is_live), f"attempt {number} of job {job_id}"
            assert not is_last or order == job.order, f"job {job_id} was told {order}, not {job.order}"
        assert numbers == {job.id: job.attempt for job in jobs.values() if job.attempt}

    def _compare_reports(self, jobs: dict[int, ModelJob]) -> None:
        """All that an attempt reported while it had its devices is there once, and nothing else is."""
        for kind, query in REPORTS.items():
            rows = sorted((job_id, number, _step(what)) for job_id, number, what in self._ledger.rows(query))
            told = sorted((job.id, *each[1:]) for job in jobs.values() for each in job.told if each[0] == kind)
            assert rows == told, f"{kind}: {rows}, not {told}"
        saved = {job.id: each for job in jobs.values() for each in job.told if each[0] == "checkpoint"}
        assert sorted(self._ledger.rows(BEST)) == sorted((job_id, *each[1:]) for job_id, each in saved.items())

    def _compare_placements(self, shares: Iterable[Share]) -> dict[int, Row]:
        known = {share.placement.id: share for share in shares}
        rows = {row[0]: row for row in self._ledger.rows(PLACEMENTS)}
        assert set(rows) == set(known)
        for placement_id, _, _, created_at, ended_at, heartbeat_at, supervisor in rows.values():
            share = known[placement_id]
            assert (ended_at is None) == share.is_open
            assert supervisor == (share.supervisor if share.claimed else None), "two supervisors have one placement"
            assert ended_at is None or created_at <= (heartbeat_at or created_at) <= ended_at
        return rows

    def _compare_leases(
        self, shares: Iterable[Share], ends: dict[int, Row], devices: dict[int, tuple[str, str]]
    ) -> None:
        """No device was ever held twice at once; those of a placement are held for as long as it is open."""
        held: dict[int, list[Row]] = {}
        by_placement: dict[int, list[tuple[str, str]]] = {}
        for row in self._ledger.rows(LEASES):
            device_id, placement_id, _, released_at = row
            held.setdefault(device_id, []).append(row)
            by_placement.setdefault(placement_id, []).append(devices[device_id])
            assert released_at == ends[placement_id][4], f"placement {placement_id} and its lease do not end together"
        for leases in held.values():
            for earlier, later in pairwise(leases):
                assert earlier[3] is not None, f"device {earlier[0]} is held twice"
                assert earlier[3] <= later[2], f"device {earlier[0]} was held twice at once"
        assert by_placement == {share.placement.id: share.devices for share in shares}

    def _compare_devices(self, fleet: dict[str, ModelHost]) -> dict[int, tuple[str, str]]:
        found = {}
        for device_id, host_name, name, losses, quarantined_at in self._ledger.rows(DEVICES):
            found[device_id] = (host_name, name)
            device = fleet[host_name].devices[name]
            is_so = (losses, quarantined_at is not None)
            assert is_so == (device.losses, device.quarantined), f"{host_name} {name}: {is_so}"
        return found


def _step(stored: Any) -> int:
    """The step that a column tells, alone or in its JSON."""
    detail = parsed(stored)
    return int(detail["step"] if isinstance(detail, dict) else detail)
