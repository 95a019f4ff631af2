"""How a report reads: lines of text for a terminal of 100 columns."""

from collections.abc import Iterator

from jobs.simulation.report import Report, Waits

HEAD = f"  {'':20}{'jobs':>9}{'mean':>12}{'p50':>12}{'p95':>12}{'p99':>12}{'longest':>12}"


def render(report: Report) -> str:
    """Return a report as text."""
    return "\n".join(_lines(report)) + "\n"


def duration(seconds: float) -> str:
    """Say a time in the unit that suits it: `42 s`, `3.5 min`, `2.0 h`, `1.5 d`."""
    for unit, length, enough in (("d", 86_400, 2 * 86_400), ("h", 3600, 2 * 3600), ("min", 60, 120)):
        if seconds >= enough:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _lines(report: Report) -> Iterator[str]:
    fleet = f"{report.devices:,} devices of {report.hosts:,} hosts"
    yield f"{report.jobs:,} jobs on {fleet}, in {duration(report.simulated_s)}"
    yield ""
    yield f"submitted {report.submitted:,}, started {report.started:,}, ended {report.ended:,}"
    busy, while_blocked = report.busy, report.busy_while_blocked
    yield f"devices busy {busy:.1%} of the time, {while_blocked:.1%} of the time that a plan had left jobs waiting"
    yield f"at most {report.most_blocked:,} jobs left waiting by one plan"
    yield f"{report.backfilled:,} starts past a job that waits for its devices, {report.preemptions:,} jobs preempted"
    yield ""
    yield "waits from submission to the first start"
    yield HEAD
    yield _row("all", report.waits)
    for size, waits in report.waits_by_gang.items():
        yield _row(f"{size} device{'' if size == '1' else 's'}", waits)
    for priority, waits in report.waits_by_priority.items():
        yield _row(f"priority {priority}", waits)
    yield ""
    if (gang := report.longest_gang_wait) is not None:
        hosts = f"{gang.nodes} hosts" if gang.nodes > 1 else "1 host"
        yield (
            f"longest wait of a gang {duration(gang.wait_s)}, its bound {duration(gang.bound_s)}"
            f" (job {gang.job_id}: {gang.devices} devices on {hosts}, priority {gang.priority})"
        )
    yield f"jobs that waited for longer than their bound: {report.over_bound:,}"
    planning = report.planning
    yield (
        f"planning {planning.plans:,} times, in CPU time: mean {planning.mean_ms:.1f} ms, p95 {planning.p95_ms:.1f} ms,"
        f" worst {planning.worst_ms:.1f} ms"
    )
    if report.waiting:
        yield ""
        yield f"still waiting: {report.waiting:,}"
        for job_id, reason in report.waiting_for.items():
            yield f"  job {job_id} {reason}"


def _row(name: str, waits: Waits) -> str:
    times = (waits.mean_s, waits.p50_s, waits.p95_s, waits.p99_s, waits.longest_s)
    return f"  {name:20}{waits.jobs:>9,}" + "".join(f"{duration(each):>12}" for each in times)
