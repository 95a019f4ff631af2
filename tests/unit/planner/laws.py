"""What must hold of every plan, whatever the scene."""

from collections import Counter
from collections.abc import Sequence

from jobs.planner.matching import fits, has_accelerator, listed_names, suitable_devices
from jobs.planner.view import OUT_OF_CONTACT, Account, Decision, Preempt, Scene, Start, Wait, WaitingJob


def check(scene: Scene, decisions: Sequence[Decision]) -> None:
    """Check a plan against each law."""
    each_job_once_in_order(scene, decisions)
    no_device_twice(scene, decisions)
    gangs_whole_and_fitting(scene, decisions)
    reservations_undelayed(scene, decisions)
    quotas_kept(scene, decisions)
    victims_named_by_the_rule(scene, decisions)
    waits_explained(scene, decisions)
    reservations_fitting(scene, decisions)
    only_heads_have_reservations(scene, decisions)


def each_job_once_in_order(scene: Scene, decisions: Sequence[Decision]) -> None:
    told = [each.job_id for each in decisions if not isinstance(each, Preempt)]
    assert Counter(told) == Counter(job.id for job in scene.waiting)
    keys = [(each.line_key, each.job_id) for each in decisions if isinstance(each, Wait)]
    assert keys == sorted(keys)


def no_device_twice(scene: Scene, decisions: Sequence[Decision]) -> None:
    given = Counter(device.id for each in _starts(decisions) for node in each.nodes for device in node.devices)
    assert all(times == 1 for times in given.values())
    assert not given.keys() & {device_id for job in scene.running for device_id in job.device_ids}


def gangs_whole_and_fitting(scene: Scene, decisions: Sequence[Decision]) -> None:
    jobs = {job.id: job for job in scene.waiting}
    open_hosts = {host.name: host for host in scene.hosts if host.closed is None}
    accelerated = has_accelerator(scene.hosts)
    for each in _starts(decisions):
        job, request = jobs[each.job_id], jobs[each.job_id].request
        assert job.not_before is None or job.not_before <= scene.now
        names = {node.host_name for node in each.nodes}
        assert len(each.nodes) == len(names) == request.nodes
        assert names <= open_hosts.keys()
        assert request.host is None or names == {request.host}
        assert job.resumes_on is None or names <= job.resumes_on
        for node in each.nodes:
            assert len(node.devices) == request.per_node
            assert set(node.devices) <= set(open_hosts[node.host_name].devices)
            assert not any(device.quarantined for device in node.devices)
            listed = listed_names(request)
            if listed is None:
                assert all(fits(device, request, accelerated=accelerated) for device in node.devices)
            else:
                assert tuple(device.name for device in node.devices) == listed


def reservations_undelayed(scene: Scene, decisions: Sequence[Decision]) -> None:
    """A device set aside for an earlier job is given only to one that ends, as foretold, before that may start."""
    durations = {job.id: job.duration_s for job in scene.waiting}
    silent = _out_of_contact(scene)
    starts: dict[int, float | None] = {}
    for each in decisions:
        if isinstance(each, Start):
            for device in (device for node in each.nodes for device in node.devices):
                duration = durations[each.job_id]
                if device.id in starts:
                    start = starts[device.id]
                    assert start is not None
                    assert duration is not None
                    assert scene.now + duration <= start
        elif isinstance(each, Wait) and each.reservation is not None:
            if silent.intersection(each.reservation.device_ids):
                continue
            for device_id in each.reservation.device_ids:
                start = each.reservation.start
                if device_id not in starts:
                    starts[device_id] = start
                elif start is not None and starts[device_id] is not None:
                    starts[device_id] = min(start, starts[device_id] or start)


def quotas_kept(scene: Scene, decisions: Sequence[Decision]) -> None:
    limits = {quota.account: quota.max_devices for quota in scene.quotas}
    used = Counter[Account]()
    for job in scene.running:
        for account in accounts(job.user, job.labels):
            used[account] += len(job.device_ids)
    before = used.copy()
    jobs = {job.id: job for job in scene.waiting}
    for each in _starts(decisions):
        for account in accounts(jobs[each.job_id].user, jobs[each.job_id].labels):
            used[account] += sum(len(node.devices) for node in each.nodes)
    for account, devices in used.items():
        limit = limits.get(account, limits.get(("user", "*")) if account[0] == "user" else None)
        # Runs that began under a wider quota go on; nothing is added to them.
        assert limit is None or devices <= limit or devices == before[account]


def victims_named_by_the_rule(scene: Scene, decisions: Sequence[Decision]) -> None:
    running = {job.id: job for job in scene.running}
    waiting = {job.id: job for job in scene.waiting}
    by_job = {each.job_id: each for each in decisions if isinstance(each, Wait)}
    stopped = [each for each in decisions if isinstance(each, Preempt)]
    assert len({each.job_id for each in stopped}) == len(stopped)
    for each in stopped:
        victim = running[each.job_id]
        assert victim.preemptible
        assert not victim.is_stopping
        assert victim.attempt == each.attempt
        assert victim.priority < waiting[each.for_job].priority
        reservation = by_job[each.for_job].reservation
        assert reservation is not None
        assert reservation.preempts
        assert set(reservation.device_ids) & set(victim.device_ids), "nobody is stopped for nothing"


def waits_explained(scene: Scene, decisions: Sequence[Decision]) -> None:
    known = {job.id for job in scene.waiting} | {job.id for job in scene.running}
    for each in decisions:
        if isinstance(each, Wait):
            assert each.reason
            assert {holder.job_id for holder in each.waits_for} <= known - {each.job_id}
            assert all(f"{holder.device} (" in each.reason for holder in each.waits_for)
            assert each.predicted_start is None or each.predicted_start >= scene.now


def reservations_fitting(scene: Scene, decisions: Sequence[Decision]) -> None:
    jobs = {job.id: job for job in scene.waiting}
    devices = [device for host in scene.hosts if host.closed is None for device in host.devices]
    usable = {device.id for device in devices if not device.quarantined}
    silent = _out_of_contact(scene)
    made = [each for each in decisions if isinstance(each, Wait) and each.reservation is not None]
    kept: set[int] = set()
    for each in made:
        reservation, before = each.reservation, jobs[each.job_id].reservation
        assert reservation is not None
        if silent.intersection(reservation.device_ids):
            assert reservation == before, "it is kept for when its hosts are back, and holds nothing meanwhile"
            assert not each.waits_for
            continue
        assert len(set(reservation.device_ids)) == jobs[each.job_id].request.device_count
        assert set(reservation.device_ids) <= usable
        assert not (reservation.preempts and kept.intersection(reservation.device_ids)), "nobody is stopped to overtake"
        kept.update(reservation.device_ids)
        if reservation.start is not None and each.predicted_start is not None:
            assert reservation.start <= each.predicted_start
        if before is not None and before.device_ids == reservation.device_ids and before.start is not None:
            assert reservation.start is not None
            assert reservation.start <= before.start, "it may only come earlier"


def only_heads_have_reservations(scene: Scene, decisions: Sequence[Decision]) -> None:
    """Who waits for devices has some set aside if nobody before it who has may use any of the same, and only then.

    Those for whom others were stopped have theirs in any case, and are in nobody's way.
    """
    jobs = {job.id: job for job in scene.waiting}
    stops_others = {each.for_job for each in decisions if isinstance(each, Preempt)}
    awaited: set[int] = set()
    heads = 0
    for each in decisions:
        if not isinstance(each, Wait) or not each.waits_for:
            continue
        candidates = _candidates(scene, jobs[each.job_id])
        if each.reservation is not None and each.reservation.preempts and each.job_id not in stops_others:
            continue
        is_head = heads < scene.policy.reservations and not awaited & candidates
        assert is_head is (each.reservation is not None)
        heads += is_head
        if each.reservation is not None and not each.reservation.preempts:
            awaited |= candidates


def _out_of_contact(scene: Scene) -> set[int]:
    """The devices on which a reservation holds nothing, and is only kept for when their hosts are back."""
    return {device.id for host in scene.hosts if host.closed == OUT_OF_CONTACT for device in host.devices}


def _candidates(scene: Scene, job: WaitingJob) -> set[int]:
    accelerated = has_accelerator(scene.hosts)
    return {
        device.id
        for host in scene.hosts
        if host.closed is None and (job.resumes_on is None or host.name in job.resumes_on)
        for device in suitable_devices(job.request, host, accelerated=accelerated)
    }


def accounts(user: str | None, labels: object) -> list[Account]:
    assert isinstance(labels, dict)
    return [("user", user or ""), *[("label", f"{key}={value}") for key, value in labels.items()]]


def _starts(decisions: Sequence[Decision]) -> list[Start]:
    return [each for each in decisions if isinstance(each, Start)]
