"""Hosts and their devices, and what they can train: recipes and data sets."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rankzero.catalog import DataSet, DataSetSummary, Recipe, RecipeSummary
from rankzero.connection import parsed
from rankzero.fleet import Host, HostDevice, Quota, Quotas
from rankzero.models import DeviceSample
from rankzero.resources.resource import Resource, part


class Hosts(Resource):
    """The client's methods about the fleet."""

    def hosts(self) -> Sequence[Host]:
        """Return every host with its devices."""
        return self._connection.items("/hosts", Host)

    def host(self, host: str) -> Host:
        """Return one host with its devices."""
        return parsed(Host, self._connection.get(f"/hosts/{part(host)}"))

    def device(self, host: str, device: str) -> HostDevice:
        """Return one device of a host."""
        return parsed(HostDevice, self._connection.get(_device(host, device)))

    def drain(self, host: str, *, note: str | None = None, evict: bool = False) -> Host:
        """Have a host get no new jobs until it is taken back; `evict` also stops those on it, with a checkpoint, and
        queues them again."""
        body = {"note": note, "evict": evict}
        return parsed(Host, self._connection.send("POST", f"/hosts/{part(host)}/drain", body))

    def undrain(self, host: str) -> Host:
        """Take a drained host back."""
        return parsed(Host, self._connection.send("POST", f"/hosts/{part(host)}/undrain"))

    def remove_host(self, host: str) -> None:
        """Forget a host that is gone for good; a worker that registers under its name brings it back."""
        self._connection.delete(f"/hosts/{part(host)}")

    def quarantine(self, host: str, device: str, *, reason: str) -> Host:
        """Hand a device out no more until it is released; a run that has it goes on."""
        return parsed(Host, self._connection.send("POST", f"{_device(host, device)}/quarantine", {"reason": reason}))

    def release(self, host: str, device: str) -> Host:
        """Hand out a device in quarantine again, with its losses forgotten."""
        return parsed(Host, self._connection.send("POST", f"{_device(host, device)}/release"))

    def host_telemetry(
        self, host: str, *, begin: datetime | None = None, end: datetime | None = None
    ) -> Iterator[DeviceSample]:
        """Yield what each GPU of a host did, by time, within these aware times."""
        query = {"from": begin, "to": end}
        yield from self._connection.pages(f"/hosts/{part(host)}/telemetry", DeviceSample, query)

    def recipes(self) -> Sequence[RecipeSummary]:
        """Return every recipe that some host has, with its models."""
        return self._connection.items("/recipes", RecipeSummary)

    def recipe(self, name: str) -> Recipe:
        """Return one recipe with the JSON schema of its options."""
        return parsed(Recipe, self._connection.get(f"/recipes/{part(name)}"))

    def data_sets(self) -> Sequence[DataSetSummary]:
        """Return what jobs can name as their data."""
        return self._connection.items("/data-sets", DataSetSummary)

    def data_set(self, name: str) -> DataSet:
        """Return one data set with its counts and a few samples, as each host that has it has found it."""
        return parsed(DataSet, self._connection.get(f"/data-sets/{part(name)}"))

    def quotas(self) -> Quotas:
        """Return every quota, and what each user's jobs hold and have used lately."""
        return parsed(Quotas, self._connection.get("/quotas"))

    def set_quota(self, kind: str, subject: str, *, max_devices: int | None = None, share: float = 1) -> Quota:
        """Set the quota of a `user`, or of a `label` by its `key=value`, in place of the one it had."""
        body = {"max_devices": max_devices, "share": share}
        return parsed(Quota, self._connection.send("PUT", f"/quotas/{part(kind)}/{part(subject)}", body))

    def delete_quota(self, kind: str, subject: str) -> None:
        """Take a quota away."""
        self._connection.delete(f"/quotas/{part(kind)}/{part(subject)}")


def _device(host: str, device: str) -> str:
    return f"/hosts/{part(host)}/devices/{part(device)}"
