"""How many streams there may be at once: of one user, and at one process."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.integration.conftest import copy_of_sqlite
from tests.integration.guarded_api import GuardedApi
from tests.integration.test_api_errors import problem_of
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedApi]:
    folder = tmp_path_factory.mktemp("api")
    url = copy_of_sqlite(migrated_sqlite_template, folder)
    with GuardedApi(url, folder, streams=5, streams_per_user=3) as server:
        yield server


def stream(api: GuardedApi, user: str) -> AbstractContextManager[httpx2.Response]:
    return api.by(user).stream("GET", "/events")


def opened(api: GuardedApi, user: str) -> int:
    """The status that a user gets who opens a stream and closes it again."""
    with stream(api, user) as answer:
        return answer.status_code


def test_a_user_has_only_so_many_streams_by_all_tokens_together_and_others_have_their_own(api: GuardedApi) -> None:
    second = api.by("alice").post("/tokens", json={"name": "another"}).json()["token"]
    with ExitStack() as streams:
        mine = [streams.enter_context(stream(api, "alice")) for _ in range(3)]
        assert [each.status_code for each in mine] == [200] * 3

        refused = api.with_token(second).get("/events")

        assert "alice has 3 event streams open here already: close one" in problem_of(refused, 429)["detail"]
        assert int(refused.headers["Retry-After"]) > 0
        assert opened(api, "bob") == 200
        mine[0].close()
        wait_until(lambda: opened(api, "alice") == 200, timeout_s=10, what="the place of a closed stream")
    wait_until(lambda: opened(api, "alice") == 200, timeout_s=10, what="the places of closed streams")


def test_a_process_has_only_so_many_streams_and_sends_who_comes_then_elsewhere(api: GuardedApi) -> None:
    with ExitStack() as streams:

        def opens(user: str) -> bool:
            """Earlier streams may be on their way out still."""
            return streams.enter_context(stream(api, user)).status_code == 200

        for user in ("alice", "alice", "alice", "bob", "bob"):
            wait_until(partial(opens, user), timeout_s=10, what="a place")

        refused = api.by("vera").get("/events")

        assert "or at another one" in problem_of(refused, 503)["detail"]
        assert int(refused.headers["Retry-After"]) > 0
        assert api.by("vera").get("/jobs").status_code == 200
