"""The Python client: a service's HTTP API as methods, by what they are about in `rankzero.resources`."""

from types import TracebackType
from typing import Self

from rankzero.connection import PATIENCE_S, Connection
from rankzero.errors import UnreachableError
from rankzero.resources.access import Access
from rankzero.resources.following import Following
from rankzero.resources.hosts import Hosts
from rankzero.resources.webhooks import Webhooks


class Client(Following, Hosts, Access, Webhooks):
    """One service, at `url` or else at RANKZERO_URL or else on this machine; a context manager that closes itself.

    Its token is `token`, or else RANKZERO_TOKEN, or else the one that is stored for this URL (`rankzero.credentials`).
    It is sent to this service alone: no redirect is followed. It travels by https, or on this machine; elsewhere by
    http only with `insecure`, since who sees it may run programs on the GPU hosts: UsageError otherwise.

    Every method raises UnreachableError where no service answers and RefusedError where it refuses. A request whose
    answer is lost is sent again for `patience_s` seconds, and so is one that the service asks to repeat later.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        insecure: bool | None = None,
        timeout_s: float = 30,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`timeout_s` is for how long one answer may take, `patience_s` for how long one is tried for."""
        self._connection = Connection(url, token=token, insecure=insecure, timeout_s=timeout_s, patience_s=patience_s)
        self.url = self._connection.url

    def is_ready(self) -> bool:
        """Whether the service answers now and can take jobs."""
        try:
            self._connection.get("/readyz", patience_s=0)
        except UnreachableError:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"
