"""Registration: this worker's hold of its host's name, the host's devices, its files, and what its trainer can run."""

import os
import threading
from collections.abc import Sequence

import structlog

from jobs.database import Database
from jobs.errors import HostNameTakenError
from jobs.settings import Settings
from jobs.store import hosts, roots
from trainer.process_identity import identity, is_alive, is_local
from worker import host, storage
from worker.clock import clock
from worker.fitness import Fitness
from worker.storage import Storages

log = structlog.get_logger()


class Registration:
    """Keeps the database's row of this host up to date."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        devices: Sequence[hosts.DeviceInfo],
        storages: Storages,
        fitness: Fitness,
    ) -> None:
        self._database = database
        self._settings = settings
        self._devices = devices
        self._storages = storages
        self._fitness = fitness
        self._me = identity(os.getpid())
        self._address = host.LOOPBACK
        self._catalog: dict[str, object] | None = None
        self._turn = threading.Lock()
        """Sweeps and the heartbeat speak for the host, one at a time."""
        self._told_at = float("-inf")
        """Time on `clock` when the database last heard that this worker lives."""
        self.is_held = False
        """Whether the name is this worker's: without it, it cares for no placement and plans nothing."""

    def read_catalog(self) -> None:
        """Begin to ask the trainer what it can run, which takes as long as importing torch."""

        def read() -> None:
            self._catalog = host.read_catalog()

        threading.Thread(target=read, name="catalog", daemon=True).start()

    def keep(self) -> None:
        """Register the host, or say that its worker lives, and publish what is known of its trainer.

        Raises HostNameTakenError while another worker that may be alive has the name.
        """
        with self._turn:
            if self.is_held:
                self._beat()
            else:
                self._register()
        self._publish()

    def beat_after(self, silent_s: float) -> None:
        """Say that the host's worker lives, where that was last said at least so many seconds ago.

        Raises HostNameTakenError where another has taken the name since.
        """
        with self._turn:
            if self.is_held and clock() - self._told_at >= silent_s:
                self._beat()

    def publish_status(self) -> None:
        """Publish what the host says of itself, where that should not wait for the next heartbeat."""
        with self._turn:
            if not self.is_held:
                return
            with self._database.session_scope() as session:
                hosts.set_status(session, self._settings.host_name, self._status())

    def _register(self) -> None:
        name = self._settings.host_name
        self._address = host.find_address(self._settings)
        with self._database.session_scope() as session:
            holder = hosts.worker_of(session, name)
            is_dead = holder is not None and is_local(holder) and not is_alive(holder)
            hosts.register(
                session,
                name,
                worker=self._me,
                run_root=str(self._settings.run_root),
                devices=self._devices,
                replaces=holder if is_dead else None,
            )
            roots.publish(session, name, self._settings.roots)
            hosts.set_status(session, name, self._status())
        self.is_held, self._told_at = True, clock()
        log.info("registered", host=name, devices=len(self._devices))

    def _beat(self) -> None:
        try:
            with self._database.session_scope() as session:
                hosts.beat(session, self._settings.host_name, worker=self._me)
                hosts.set_status(session, self._settings.host_name, self._status())
        except HostNameTakenError:
            self.is_held = False
            raise
        self._told_at = clock()

    def _status(self) -> hosts.HostStatus:
        looked_at = self._storages.looked_at  # before the ids: a look that ends between the two has found more
        return hosts.HostStatus(
            address=self._address,
            storages=self._storages.ids,
            looked_at=looked_at,
            free_bytes=storage.free_bytes(self._settings.run_root),
            min_free_bytes=self._settings.min_free_bytes,
            fault=self._fitness.fault(),
            rendezvous_ports=self._settings.rendezvous_ports,
        )

    def _publish(self) -> None:
        if self._catalog is None:
            return
        try:
            with self._database.session_scope() as session:
                hosts.set_catalog(session, self._settings.host_name, self._catalog)
        except ValueError as error:
            log.error("catalog_invalid", error=str(error))
        self._catalog = None
