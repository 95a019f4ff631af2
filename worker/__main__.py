"""`python -m worker`: the worker of this host, set up by `RANKZERO_…` variables."""

import argparse
import sys

from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.wakeups import PLAN_QUEUE, host_queue


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
    name = get_settings().host_name
    try:
        application.app.worker_main(
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
    finally:
        worker.stop()


if __name__ == "__main__":
    main()
