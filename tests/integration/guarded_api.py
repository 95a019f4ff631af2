"""The API as it is on a network: it asks for tokens, and four users have one each."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from jobs import tokens
from jobs.access import Role
from tests.api_server import TRAIN, ApiServer

USERS = {"root": Role.ADMIN, "alice": Role.SUBMITTER, "bob": Role.SUBMITTER, "vera": Role.VIEWER}


class GuardedApi(ApiServer):
    """An API that asks for tokens."""

    def __init__(self, database_url: str, folder: Path, **settings: Any) -> None:
        super().__init__(database_url, folder, access="tokens", **settings)
        with self.database.session_scope() as session:
            self.tokens = {
                name: tokens.create(session, name, role, token_name="of the tests", days=None)
                for name, role in USERS.items()
            }
        self._clients: list[httpx2.Client] = []

    def by(self, user: str) -> httpx2.Client:
        """A client that sends the token of a user."""
        return self.with_token(self.tokens[user])

    def with_token(self, token: str) -> httpx2.Client:
        """A client that sends this token."""
        client = httpx2.Client(base_url=self.url, timeout=30, headers={"Authorization": f"Bearer {token}"})
        self._clients.append(client)
        return client

    def submit_by(self, user: str, **fields: object) -> int:
        """Submit a job on behalf of a user and return its id."""
        answer = self.by(user).post("/jobs", json={"device": "cpu", "train": TRAIN} | fields)
        assert answer.status_code == 201, answer.text
        job_id = answer.json()["id"]
        assert isinstance(job_id, int)
        return job_id

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        super().__exit__(kind, error, trace)
