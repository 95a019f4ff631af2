"""A submission that is sent again under its Idempotency-Key."""

import threading
import uuid
from typing import Any

import httpx2
import pytest

from tests.api_server import TRAIN, ApiServer
from tests.integration.test_api_errors import fields_of, problem_of

TIMES = 20


@pytest.fixture
def key() -> str:
    """A key of this test's own: the tests share one service."""
    return str(uuid.uuid4())


def submit(api: ApiServer, key: str, **fields: Any) -> httpx2.Response:
    body = {"device": "0", "train": TRAIN} | fields
    return api.http.post("/jobs", json=body, headers={"Idempotency-Key": key})


def named(api: ApiServer, name: str) -> list[dict[str, Any]]:
    items = api.http.get("/jobs", params={"name": name}).json()["items"]
    assert isinstance(items, list)
    return items


def test_one_key_posted_20_times_in_parallel_is_one_job_with_one_id(api: ApiServer, key: str) -> None:
    together = threading.Barrier(TIMES)
    answers: list[httpx2.Response] = []

    def post() -> None:
        together.wait()
        answers.append(submit(api, key, name=key))

    threads = [threading.Thread(target=post) for _ in range(TIMES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [answer.status_code for answer in answers] == [201] * TIMES
    (job_id,) = {answer.json()["id"] for answer in answers}
    assert {answer.headers["Location"] for answer in answers} == {f"/jobs/{job_id}"}
    assert [job["id"] for job in named(api, key)] == [job_id]


def test_the_same_key_with_another_body_is_an_error_that_stores_nothing(api: ApiServer, key: str) -> None:
    job_id = submit(api, key, name=key).json()["id"]

    refused = fields_of(submit(api, key, name=key, priority=51))

    assert list(refused) == ["Idempotency-Key"]
    assert f"which is job {job_id}" in refused["Idempotency-Key"]
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
