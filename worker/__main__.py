"""`python -m worker`: the worker of this host, set up by `RANKZERO_…` variables."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.wakeups import PLAN_QUEUE, host_queue

if TYPE_CHECKING:
    from celery import Celery

AGAIN_S = 1
"""Seconds after which Celery is started again where it ended by itself."""

log = structlog.get_logger()


def main() -> None:
    """Run until SIGTERM or SIGINT; running jobs go on without it."""
    argparse.ArgumentParser(
        prog="python -m worker",
        description="The worker of this host: it runs jobs on the host's devices until SIGTERM or SIGINT. It takes no "
        "arguments; RANKZERO_... environment variables set it up (docs/settings.md).",
    ).parse_args()
    try:
        # Late: to make the Celery application is to read the settings, and what is wrong with them is said below.
        from worker import app as application

        configure_logs()
        worker = application.Worker()
    except ValueError as error:
        sys.exit(f"rankzero worker: {error}")
    application.running = worker
    worker.start()
    try:
        _receive_wake_ups(application.app)
    finally:
        worker.stop()


def _receive_wake_ups(app: "Celery") -> None:
    """Run Celery until this process is asked to stop.

    It also ends by itself, on what it does not expect of a broker: an error for an answer, such as that of a replica
    which became read-only, or a connection lost between a message and its acknowledgement. The sweeps, which need no
    broker, must not end with it.
    """
    name = get_settings().host_name
    run: Callable[[list[str]], object] = app.worker_main  # which returns, whatever its stub says
    while True:
        run(
            [
                "--quiet",  # no banner between the lines of the log
                "worker",
                # Tasks take milliseconds and start processes: threads spare a host the memory of forked copies.
                "--pool=threads",
                "--concurrency=2",
                f"--queues={PLAN_QUEUE},{host_queue(name)}",
                f"--hostname=rankzero@{name}",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "--loglevel=WARNING",
            ]
        )
        if _is_asked_to_stop():
            return
        log.error("wake_ups_interrupted", reason="Celery gave up on its broker; it begins anew", again_s=AGAIN_S)
        time.sleep(AGAIN_S)


def _is_asked_to_stop() -> bool:
    """Whether a signal has asked this process to stop: Celery's handlers of it set one of these."""
    from celery.worker import state

    return (state.should_stop, state.should_terminate) != (None, None)


if __name__ == "__main__":
    main()
