"""A request to make something that is sent again under its Idempotency-Key, and two that make the same at once."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.api_server import TRAIN, ApiServer
from tests.integration.test_api_errors import fields_of, problem_of

TIMES = 20


@pytest.fixture(scope="module")
def api(keyed: ApiServer) -> ApiServer:
    """The API with a key of the service: it can register webhooks."""
    return keyed


@pytest.fixture
def key() -> str:
    """A key of this test's own: the tests share one service."""
    return str(uuid.uuid4())


def submit(api: ApiServer, key: str, **fields: Any) -> httpx2.Response:
    body = {"device": "0", "train": TRAIN} | fields
    return api.http.post("/jobs", json=body, headers={"Idempotency-Key": key})


def make(api: ApiServer, path: str, key: str, body: object) -> httpx2.Response:
    return api.http.post(path, json=body, headers={"Idempotency-Key": key})


def at_once(ask: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    """Ask TIMES times at the same moment."""
    together = threading.Barrier(TIMES)
    answers: list[httpx2.Response] = []

    def ask_with_all() -> None:
        together.wait()
        answers.append(ask())

    threads = [threading.Thread(target=ask_with_all) for _ in range(TIMES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def named(api: ApiServer, name: str) -> list[dict[str, Any]]:
    items = api.http.get("/jobs", params={"name": name}).json()["items"]
    assert isinstance(items, list)
    return items


def test_one_key_posted_20_times_in_parallel_is_one_job_with_one_id(api: ApiServer, key: str) -> None:
    answers = at_once(lambda: submit(api, key, name=key))

    assert [answer.status_code for answer in answers] == [201] * TIMES
    (job_id,) = {answer.json()["id"] for answer in answers}
    assert {answer.headers["Location"] for answer in answers} == {f"/jobs/{job_id}"}
    assert [job["id"] for job in named(api, key)] == [job_id]


def test_the_same_key_with_another_body_is_an_error_that_stores_nothing(api: ApiServer, key: str) -> None:
    job_id = submit(api, key, name=key).json()["id"]

    refused = fields_of(submit(api, key, name=key, priority=51))

    assert list(refused) == ["Idempotency-Key"]
    assert f"which made jobs/{job_id}" in refused["Idempotency-Key"]
    assert len(named(api, key)) == 1


def test_a_job_that_moved_on_is_answered_as_it_is_now(api: ApiServer, key: str) -> None:
    job_id = submit(api, key).json()["id"]
    api.http.post(f"/jobs/{job_id}/cancel")

    again = submit(api, key)

    assert (again.status_code, again.json()["id"], again.json()["state"]) == (201, job_id, "cancelled")


def test_a_clone_is_made_once_for_each_key(api: ApiServer, key: str) -> None:
    job_id = api.submit()
    made = [
        api.http.post(f"/jobs/{job_id}/clone", json={}, headers={"Idempotency-Key": each}).json()["id"]
        for each in (key, key, f"{key} again")
    ]

    assert made[0] == made[1] != made[2]
    problem_of(submit(api, key), 422)


def test_a_refused_submission_leaves_its_key_free(api: ApiServer, key: str) -> None:
    problem_of(submit(api, key, start_from={"job": 999_999}), 422)

    assert submit(api, key).status_code == 201


@pytest.mark.parametrize("value", [r'"\ud800"', "[" * 600 + "]" * 600], ids=["lone surrogate", "nested deep"])
@pytest.mark.parametrize("with_key", [True, False])
def test_odd_json_is_refused_with_and_without_a_key(api: ApiServer, key: str, value: str, with_key: bool) -> None:
    job_id = api.submit()
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if with_key else {})
    body = f'{{"changes": {{"train": {{"model": {value}}}}}}}'

    answer = api.http.post(f"/jobs/{job_id}/clone", content=body, headers=headers)

    assert answer.status_code == 422, answer.text


def test_every_request_that_makes_something_takes_a_key(api: ApiServer) -> None:
    making = [
        operation
        for methods in api.http.get("/openapi.json").json()["paths"].values()
        for operation in methods.values()
        if "201" in operation["responses"]
    ]
    assert {operation["operationId"] for operation in making} >= {"submit_job", "create_user", "create_webhook"}
    for operation in making:
        names = [parameter["name"] for parameter in operation["parameters"]]
        assert "Idempotency-Key" in names, operation["operationId"]


def test_a_user_is_added_once_for_each_key(api: ApiServer, key: str) -> None:
    body = {"name": f"user-{key}", "role": "viewer"}
    first, second = (make(api, "/users", key, body) for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert (second.json(), second.headers["Location"]) == (first.json(), first.headers["Location"])
    problem_of(make(api, "/users", f"{key} again", body), 409)
    assert "which made users/" in fields_of(make(api, "/users", key, body | {"role": "admin"}))["Idempotency-Key"]


def test_a_webhook_is_registered_once_for_each_key_and_its_own_key_shown_again(api: ApiServer, key: str) -> None:
    body = {"url": "https://hooks.example/a", "description": key}
    first, second = (make(api, "/webhooks", key, body) for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second.headers["Cache-Control"] == "no-store"
    listed = api.http.get("/webhooks", params={"size": 1000}).json()["items"]
    assert len([each for each in listed if each["description"] == key]) == 1
    assert api.http.delete(first.headers["Location"]).status_code == 204
    problem_of(make(api, "/webhooks", key, body), 409)


def test_a_token_is_made_once_for_each_key_and_where_its_text_is_lost_the_answer_says_what_to_do(
    api: ApiServer, key: str
) -> None:
    user = f"user-{key}"
    make(api, "/users", f"{key} user", {"name": user, "role": "viewer"})
    body = {"name": "nightly", "user": user}
    made = make(api, "/tokens", key, body).json()
    refused = problem_of(make(api, "/tokens", key, body), 409)

    assert f"DELETE /tokens/{made['id']}" in refused["detail"]
    assert made["token"] not in str(refused)
    listed = api.http.get("/tokens", params={"user": user}).json()["items"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert api.http.delete(f"/tokens/{made['id']}").status_code == 204
    assert make(api, "/tokens", f"{key} again", body).status_code == 201


def test_a_key_that_made_something_of_another_kind_says_nothing_of_it(api: ApiServer, key: str) -> None:
    assert make(api, "/users", key, {"name": f"user-{key}", "role": "viewer"}).status_code == 201
    assert "made" not in fields_of(submit(api, key))["Idempotency-Key"]


def test_of_many_who_add_one_user_at_once_one_does(api: ApiServer, key: str) -> None:
    answers = at_once(lambda: api.post("/users", {"name": f"user-{key}", "role": "viewer"}))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * (TIMES - 1)


def test_many_who_store_one_secret_at_once_store_one_and_many_who_remove_it_remove_it_once(
    api: ApiServer, key: str
) -> None:
    path = f"/secrets/{key}"
    stored = at_once(lambda: api.http.put(path, json={"value": "x"}))
    assert [answer.status_code for answer in stored] == [200] * TIMES
    removed = at_once(lambda: api.http.delete(path))
    assert sorted(answer.status_code for answer in removed) == [204] + [404] * (TIMES - 1)
