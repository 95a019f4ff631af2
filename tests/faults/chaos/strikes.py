"""The strikes of the chaos run: each of the faults of the matrix that a standing service of two hosts can meet."""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from jobs import wakeups
from tests.faults.chaos.storm import Storm, Strike
from tests.faults.chaos.world import HOSTS
from tests.faults.matrix.fault import Missed
from tests.faults.matrix.ranks import is_rank
from worker.processes import MarkedProcess

DUPLICATES = 100


def kill_worker(storm: Storm) -> str:
    name = _host_with_worker(storm)
    storm.world.kill_worker(name)
    _start_worker_later(storm, name, storm.draws.uniform(0, 4))
    return name


def kill_host(storm: Storm) -> str:
    name = _host_with_worker(storm)
    supervisors = storm.world.kill_host(name)
    away_s = storm.outage_s()
    _start_worker_later(storm, name, away_s)
    return f"{name} with {supervisors} supervisors, for {away_s:.1f} s"


def kill_supervisor(storm: Storm) -> str:
    return _send(storm, storm.world.supervisors(), signal.SIGKILL)


def stop_supervisor(storm: Storm) -> str:
    return _stop(storm, storm.world.supervisors(), "a stopped supervisor")


def kill_rank(storm: Storm) -> str:
    return _send(storm, storm.world.of_runs(), signal.SIGKILL)


def stop_rank(storm: Storm) -> str:
    return _stop(storm, storm.world.of_runs(), "a stopped process of a run")


def interrupt_rank(storm: Storm) -> str:
    ranks = _ranks(storm)
    if not ranks:
        raise Missed
    rank = storm.draws.choice(ranks)
    storm.users.interrupted.add(_job_of(rank))
    return _send(storm, [rank], signal.SIGINT)


def terminate_rank(storm: Storm) -> str:
    return _send(storm, _ranks(storm), signal.SIGTERM)


def flush_broker(storm: Storm) -> str:
    if not storm.world.valkey.running:
        raise Missed
    storm.world.valkey.flushall()
    return "all queues"


def kill_broker(storm: Storm) -> str:
    return _take_away(storm, "no broker", storm.world.valkey.kill, storm.world.valkey.start)


def stop_database(storm: Storm) -> str:
    """In order, and where that takes too long, with a client that takes no answer, by force, as an init system does."""

    def stop() -> None:
        try:
            storm.world.postgres.stop()
        except subprocess.TimeoutExpired:
            storm.note("PostgreSQL does not stop in order: killed")
            storm.world.postgres.kill()

    return _take_away(storm, "no database", stop, storm.world.postgres.start)


def kill_database(storm: Storm) -> str:
    return _take_away(storm, "no database", storm.world.postgres.kill, storm.world.postgres.start)


def silence(storm: Storm) -> str:
    way = ExitStack()
    return _take_away(storm, "cut off", lambda: way.enter_context(storm.world.proxy.silent()), way.close)


def refuse(storm: Storm) -> str:
    way = ExitStack()
    return _take_away(storm, "cut off", lambda: way.enter_context(storm.world.proxy.refusing()), way.close)


def repeat_wake_ups(storm: Storm) -> str:
    """To a worker each says no more than that it is to look, whatever id it carries."""
    name = storm.draws.choice(sorted(HOSTS))
    celery = wakeups.make_celery(storm.world.valkey.url, socket_timeout_s=1)
    try:
        with celery.connection_for_write() as connection:
            for number in range(DUPLICATES):
                task, queue = ((wakeups.PLAN, wakeups.PLAN_QUEUE), (wakeups.LAUNCH, wakeups.host_queue(name)))[
                    number % 2
                ]
                celery.send_task(task, args=[number // 4], queue=queue, connection=connection)
    except wakeups.UNREACHABLE:
        raise Missed from None
    finally:
        celery.close()
    return f"{DUPLICATES} to {name}"


def cancel(storm: Storm) -> str:
    job_id = _open_job(storm)
    storm.users.cancel(job_id)
    return f"job {job_id}"


def pause(storm: Storm) -> str:
    job_id = _open_job(storm)
    storm.users.pause(job_id)
    storm.later(f"a pause of job {job_id}", storm.draws.uniform(0, 5), partial(storm.users.resume, job_id))
    return f"job {job_id}"


def kill_api(storm: Storm) -> str:
    """At an instant of the way of a submission through it, where one is under way soon."""
    if storm.is_under_way("no API"):
        raise Missed
    in_post = storm.users.is_posting.wait(timeout=1)
    time.sleep(storm.draws.uniform(0, 0.04))
    storm.world.api.kill()
    storm.later("no API", storm.draws.uniform(0, 2), storm.world.api.start)
    return "in a submission" if in_post else "idle"


STRIKES = (
    Strike("kill -9 of a worker", 3, kill_worker),
    Strike("kill -9 of a host", 2, kill_host),
    Strike("kill -9 of a supervisor", 8, kill_supervisor),
    Strike("SIGSTOP and SIGCONT of a supervisor", 5, stop_supervisor),
    Strike("kill -9 in a run", 8, kill_rank),
    Strike("SIGSTOP and SIGCONT in a run", 5, stop_rank),
    Strike("SIGINT to a rank", 4, interrupt_rank),
    Strike("SIGTERM to a rank", 4, terminate_rank),
    Strike("FLUSHALL", 4, flush_broker),
    Strike("kill -9 of the broker", 2, kill_broker),
    Strike("fast stop of PostgreSQL", 1, stop_database),
    Strike("kill -9 of PostgreSQL", 1, kill_database),
    Strike("a host cut off, in silence", 2, silence),
    Strike("a host cut off, refused", 2, refuse),
    Strike(f"wake-ups {DUPLICATES} times", 2, repeat_wake_ups),
    Strike("cancel", 5, cancel),
    Strike("pause and resume", 6, pause),
    Strike("kill -9 of the API", 2, kill_api),
)


def _host_with_worker(storm: Storm) -> str:
    name = storm.draws.choice(sorted(HOSTS))
    if storm.is_under_way(f"no worker on {name}"):
        raise Missed
    return name


def _start_worker_later(storm: Storm, name: str, in_s: float) -> None:
    storm.later(f"no worker on {name}", in_s, partial(storm.world.start_worker, name))


def _take_away(storm: Storm, name: str, take: Callable[[], object], give_back: Callable[[], None]) -> str:
    """Take something away for a while, unless it is away."""
    if storm.is_under_way(name):
        raise Missed
    for_s = storm.outage_s()
    take()
    storm.later(name, for_s, give_back)
    return f"for {for_s:.1f} s"


def _ranks(storm: Storm) -> Sequence[MarkedProcess]:
    """The ranks of runs, without their launchers, which the service alone has any business with."""
    return [each for each in storm.world.of_runs() if is_rank(each.pid)]


def _job_of(process: MarkedProcess) -> int:
    """Whose run it is, which the path of its run directory says."""
    assert process.run_dir is not None
    return int(Path(process.run_dir).parent.name.removeprefix("job-"))


def _send(storm: Storm, processes: Sequence[MarkedProcess], number: signal.Signals) -> str:
    """Signal one of these processes."""
    if not processes:
        raise Missed
    process = storm.draws.choice(processes)
    if not storm.world.send(process, number):
        raise Missed
    return f"{process.pid} of {process.run_dir or process.supervisor_of}"


def _stop(storm: Storm, processes: Sequence[MarkedProcess], name: str) -> str:
    """Stop one of these processes for a while."""
    if not processes:
        raise Missed
    process = storm.draws.choice(processes)
    if not storm.world.send(process, signal.SIGSTOP):
        raise Missed
    for_s = storm.outage_s()
    storm.later(f"{name} {process.pid}", for_s, partial(_go_on, storm, process))
    return f"{process.pid} of {process.run_dir or process.supervisor_of} for {for_s:.1f} s"


def _go_on(storm: Storm, process: MarkedProcess) -> None:
    storm.world.send(process, signal.SIGCONT)


def _open_job(storm: Storm) -> int:
    if not storm.users.open:
        raise Missed
    return storm.draws.choice(sorted(storm.users.open))
