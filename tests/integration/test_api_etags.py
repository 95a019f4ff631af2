"""ETags: what has not changed is not sent again, and what somebody else has edited is not overwritten."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.integration.running_job import start_job


@pytest.fixture(scope="module")
def api(keyed: ApiServer) -> ApiServer:
    """The API with a key of the service: it can register webhooks."""
    return keyed


@pytest.fixture
def quota(api: ApiServer, request: pytest.FixtureRequest) -> str:
    """The path of a quota that the test has to itself."""
    path = f"/quotas/label/test={request.node.name}"
    assert api.http.put(path, json={"max_devices": 2}).status_code == 200
    return path


def tag_of(answer: Any) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    tag = answer.headers["ETag"]
    assert isinstance(tag, str)
    return {"If-Match": tag}


def test_what_has_not_changed_is_not_sent_again(api: ApiServer, quota: str) -> None:
    for path in (f"/jobs/{api.submit()}", quota):
        tag = api.http.get(path).headers["ETag"]
        again = api.http.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag), path


def test_of_several_copies_any_will_do_and_a_proxy_may_have_weakened_it(api: ApiServer, quota: str) -> None:
    tag = api.http.get(quota).headers["ETag"]
    assert api.http.get(quota, headers={"If-None-Match": f'"other", W/{tag}'}).status_code == 304
    assert api.http.get(quota, headers={"If-None-Match": "*"}).status_code == 304
    for none in ('"other"', tag.strip('"'), ""):
        assert api.http.get(quota, headers={"If-None-Match": none}).status_code == 200, none


def test_what_has_changed_is_sent_with_another_tag(api: ApiServer) -> None:
    job_id = api.submit()
    tag = api.http.get(f"/jobs/{job_id}").headers["ETag"]
    start_job(api.database, job_id)
    answer = api.http.get(f"/jobs/{job_id}", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.json()["state"]) == (200, "running")
    assert answer.headers["ETag"] != tag


def test_of_two_who_edit_a_job_the_second_is_told(api: ApiServer) -> None:
    path = f"/jobs/{api.submit()}"
    seen = tag_of(api.http.get(path))
    first = api.http.patch(path, json={"priority": 70}, headers=seen)
    second = api.http.patch(path, json={"priority": 10}, headers=seen)
    assert (second.status_code, second.headers["Content-Type"]) == (412, "application/problem+json")
    assert "edited since" in second.json()["detail"]
    assert api.http.get(path).json()["priority"] == 70
    assert api.http.patch(path, json={"priority": 10}, headers=tag_of(first)).json()["priority"] == 10


def test_that_a_job_goes_on_keeps_nobody_from_editing_it(api: ApiServer) -> None:
    job_id = api.submit()
    seen = tag_of(api.http.get(f"/jobs/{job_id}"))
    start_job(api.database, job_id).add(progress={"step": 7})
    answer = api.http.patch(f"/jobs/{job_id}", json={"labels": {"seen": "yes"}}, headers=seen)
    assert (answer.status_code, answer.json()["labels"]) == (200, {"seen": "yes"})


def test_of_two_who_edit_a_quota_the_second_is_told(api: ApiServer, quota: str) -> None:
    seen = tag_of(api.http.get(quota))
    assert api.http.put(quota, json={"max_devices": 3}, headers=seen).status_code == 200
    assert api.http.put(quota, json={"max_devices": 4}, headers=seen).status_code == 412
    assert api.http.delete(quota, headers=seen).status_code == 412
    assert api.http.get(quota).json()["max_devices"] == 3
    assert api.http.delete(quota, headers=tag_of(api.http.get(quota))).status_code == 204


def test_a_quota_that_is_gone_is_not_made_anew_for_one_who_has_seen_it(api: ApiServer, quota: str) -> None:
    seen = tag_of(api.http.get(quota))
    api.http.delete(quota)
    assert api.http.put(quota, json={}, headers=seen).status_code == 412
    assert api.http.put(quota, json={}, headers={"If-Match": "*"}).status_code == 412
    assert api.http.get(quota).status_code == 404


def test_of_two_who_edit_a_user_the_second_is_told(api: ApiServer) -> None:
    path = f"/users/{uuid.uuid4()}"
    api.post("/users", {"name": path.removeprefix("/users/"), "role": "viewer"})
    seen = tag_of(api.http.get(path))
    assert api.http.get(path, headers={"If-None-Match": seen["If-Match"]}).status_code == 304
    first = api.http.patch(path, json={"role": "submitter"}, headers=seen)
    assert api.http.patch(path, json={"disabled": True}, headers=seen).status_code == 412
    assert api.http.get(path).json()["disabled_at"] is None
    assert api.http.patch(path, json={"disabled": True}, headers=tag_of(first)).json()["disabled_at"] is not None
    assert api.http.patch("/users/nobody", json={"disabled": True}, headers=seen).status_code == 404


def test_two_who_take_the_role_admin_from_each_other_at_once_leave_one(api: ApiServer) -> None:
    names = [f"admin-{uuid.uuid4()}" for _ in range(2)]
    for name in names:
        api.post("/users", {"name": name, "role": "admin"})
        assert api.post("/tokens", {"name": "x", "user": name}).status_code == 201
    together = threading.Barrier(len(names))

    def lower(name: str) -> int:
        together.wait()
        return api.http.patch(f"/users/{name}", json={"role": "viewer"}).status_code

    with ThreadPoolExecutor() as pool:
        assert sorted(pool.map(lower, names)) == [200, 409]
    assert [api.http.get(f"/users/{name}").json()["role"] for name in names].count("admin") == 1


def test_of_two_who_edit_a_webhook_the_second_is_told(api: ApiServer) -> None:
    path = api.post("/webhooks", {"url": "https://hooks.example/a"}).headers["Location"]
    seen = tag_of(api.http.get(path))
    assert api.http.get(path, headers={"If-None-Match": seen["If-Match"]}).status_code == 304
    first = api.http.patch(path, json={"topics": ["job.failed"]}, headers=seen)
    assert api.http.patch(path, json={"enabled": False}, headers=seen).status_code == 412
    assert api.http.delete(path, headers=seen).status_code == 412
    assert api.http.get(path).json() == first.json()
    assert api.http.delete(path, headers=tag_of(first)).status_code == 204


@pytest.mark.parametrize("given", ["nonsense", '"x"', "", '"'])
def test_a_tag_that_is_none_matches_nothing(api: ApiServer, given: str) -> None:
    answer = api.http.patch(f"/jobs/{api.submit()}", json={"priority": 1}, headers={"If-Match": given})
    assert answer.status_code == 412
