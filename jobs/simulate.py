"""`python -m jobs.simulate`: what the planner would do with a stream of jobs, made up, recorded, or a service's own."""

import argparse
import gc
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from types import FrameType

from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database, now
from jobs.errors import InvalidSettingsError
from jobs.planner.view import Host, Quota
from jobs.settings import Settings, get_settings
from jobs.simulation import page, stream
from jobs.simulation.fleet import BrokenPlanError, make_fleet
from jobs.simulation.report import report
from jobs.simulation.run import Rules, Simulation
from jobs.simulation.stream import InvalidStreamError, StreamJob
from jobs.simulation.synthetic import Size, make_stream
from jobs.store import history, quotas, scenes

JOBS, DEVICES, LOAD, SEED = 100_000, 10_000, 0.9, 0
TICK_S = 120.0
"""Coarser than a service's own 2 s: days pass in minutes, and it adds a minute to a wait on average."""
TOLD_EVERY_S = 2.0
EXIT_BROKEN = 1
"""A law of planning was broken, or a wait exceeded its bound."""
EXIT_INVALID = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulation that the arguments ask for, print its report, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.stream or options.from_database) and {options.jobs, options.load, options.seed} != {None}:
        parser.error("--jobs, --load and --seed are for a stream that is made up")
    try:
        settings = get_settings()
        scenario = _scenario(options, settings)
        if options.record is not None:
            stream.write(options.record, scenario.jobs)
    except (InvalidSettingsError, InvalidStreamError, OSError) as error:
        parser.exit(EXIT_INVALID, f"{parser.prog}: {error}\n")
    simulation = Simulation(scenario.jobs, scenario.hosts, _rules(options, settings, scenario.quotas))
    watch = _Watch(simulation)
    status = 0
    try:
        with watch:
            simulation.run(goes_on=watch.goes_on)
    except BrokenPlanError as error:
        sys.stderr.write(f"{parser.prog}: a plan breaks a law, {page.duration(simulation.now)} in: {error}\n")
        status = EXIT_BROKEN
    found = report(simulation)
    sys.stdout.write(json.dumps(asdict(found), indent=2) + "\n" if options.json else page.render(found))
    if watch.is_interrupted:
        return EXIT_INTERRUPTED
    # Who waits for a quota of their own may do so for longer than any bound.
    has_limits = any(quota.max_devices is not None for quota in scenario.quotas)
    return EXIT_BROKEN if found.over_bound and not has_limits else status


@dataclass(frozen=True)
class Scenario:
    """What is simulated, apart from the planner's settings."""

    jobs: Sequence[StreamJob]
    hosts: Sequence[Host]
    quotas: tuple[Quota, ...] = ()


class _Watch:
    """Tells on standard error how far it is, and ends it at Ctrl-C; a second one ends it as it ends any program."""

    def __init__(self, simulation: Simulation) -> None:
        self.is_interrupted = False
        self._simulation = simulation
        self._told_at = time.monotonic()

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        # Else the garbage collector walks through the whole stream in the middle of plans, and that counts to them.
        gc.freeze()

    def __exit__(self, *_error: object) -> None:
        gc.unfreeze()
        signal.signal(signal.SIGINT, self._before)

    def goes_on(self) -> bool:
        if time.monotonic() - self._told_at >= TOLD_EVERY_S:
            self._told_at = time.monotonic()
            sys.stderr.write(self._line() + "\n")
        return not self.is_interrupted

    def _line(self) -> str:
        simulation = self._simulation
        lately_s = simulation.tally.plan_s[-100:]
        return (
            f"{page.duration(simulation.now)}: {simulation.tally.ended:,} of {len(simulation.stream):,} jobs done,"
            f" {len(simulation.waiting):,} wait, {simulation.fleet.held:,} of {simulation.fleet.size:,} devices busy,"
            f" a plan takes {1000 * sum(lately_s) / max(len(lately_s), 1):.0f} ms"
        )

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write("interrupted: the report is of what there is so far\n")


def _scenario(options: argparse.Namespace, settings: Settings) -> Scenario:
    """What is simulated. Raises InvalidStreamError or OSError for a stream that cannot be read."""
    devices = options.devices or DEVICES
    made_up = make_fleet(devices, devices_per_host=options.devices_per_host)
    if options.stream is not None:
        try:
            return Scenario(stream.read(options.stream), made_up)
        except OSError as error:
            raise InvalidStreamError(f"--stream {options.stream}: {error.strerror}") from error
    if options.from_database:
        past = _past(settings.database_url)
        return replace(past, hosts=made_up) if options.devices else past
    size = Size(options.jobs or JOBS, devices, options.devices_per_host, options.load or LOAD)
    return Scenario(make_stream(size, seed=SEED if options.seed is None else options.seed), made_up)


def _past(url: str) -> Scenario:
    """The jobs that a service has had, its hosts, all of them open, and its quotas. Raises InvalidStreamError."""
    database = Database(url)
    shown = database.url.render_as_string()
    if database.is_sqlite and not Path(database.url.database or "").is_file():
        raise InvalidStreamError(f"{shown}: there is no such file; set RANKZERO_DATABASE_URL")  # or it would be made
    try:
        with database.session_scope(read_only=True) as session:
            jobs = history.read(session)
            hosts = [replace(host, closed=None) for host in scenes.view_hosts(session, now(session))]
            limits = quotas.read(session)
    except SQLAlchemyError as error:
        raise InvalidStreamError(f"{shown}: {str(error).splitlines()[0]}") from error
    finally:
        database.dispose()
    if not jobs or not hosts:
        raise InvalidStreamError(f"{shown}: has no {'host' if jobs else 'job that ran and has ended'}")
    return Scenario(jobs, hosts, limits)


def _rules(options: argparse.Namespace, settings: Settings, limits: tuple[Quota, ...]) -> Rules:
    return Rules(
        policy=scenes.policy(settings),
        quotas=limits,
        tick_s=options.tick_s,
        fair_share_half_life_s=settings.fair_share_half_life_s,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m jobs.simulate",
        description="Plan a stream of jobs with the service's own planner, under a clock that jumps; print the waits.",
        epilog="The planner's settings are the service's own: RANKZERO_AGEING_S, RANKZERO_FAIR_SHARE_S and the others."
        " The exit status is 1 if a plan broke a law or a job waited for longer than its bound.",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--stream", type=Path, metavar="FILE", help="a recorded stream: a JSON object on each line")
    source.add_argument(
        "--from-database",
        action="store_true",
        help="the past jobs of the service whose database RANKZERO_DATABASE_URL names, on its own hosts",
    )
    parser.add_argument("--jobs", type=_count, metavar="N", help=f"jobs to make up (default: {JOBS})")
    parser.add_argument("--load", type=_positive, help=f"what they ask for, as a share of the fleet (default: {LOAD})")
    parser.add_argument("--seed", type=int, metavar="N", help=f"of what is made up (default: {SEED})")
    parser.add_argument("--devices", type=_count, metavar="N", help=f"devices of the fleet (default: {DEVICES})")
    parser.add_argument("--devices-per-host", type=_count, default=8, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--tick-s", type=_positive, default=TICK_S, metavar="S", help="seconds between two plans (default: %(default)g)"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the stream there, for --stream")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before there was anything to report
        sys.exit(EXIT_INTERRUPTED)
