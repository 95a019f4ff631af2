"""What no request may cost or confuse: bodies without end or bottom, two readings of one text, methods and paths."""

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import TRAIN, ApiServer
from tests.integration.conftest import api_on_sqlite
from tests.integration.test_api_errors import JSON, fields_of, problem_of

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API on one of the databases: none has a part in what is tried here."""
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


def deep(levels: int) -> str:
    return '{"train": {"model": "m", "data": "d", "options": ' + "[" * levels + "]" * levels + "}}"


def kilobytes(pid: int, what: str) -> int:
    (line,) = re.findall(rf"^{what}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(line)


@contextmanager
def flat_memory(api: ApiServer) -> Iterator[None]:
    """Hold the server to what memory it has now, and 32 MiB, at any moment until the end."""
    problem_of(api.post("/jobs", {}), 422)  # what it loads for its first answer
    Path(f"/proc/{api.pid}/clear_refs").write_text("5")  # the peak begins anew
    before = kilobytes(api.pid, "VmRSS")
    yield
    assert kilobytes(api.pid, "VmHWM") - before < 32 * 1024


def test_a_chunked_body_of_a_gigabyte_is_refused_with_flat_memory(api: ApiServer) -> None:
    sent = 0

    def gigabyte() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1024):
            sent += MIB
            yield b" " * MIB

    with flat_memory(api):
        problem_of(api.http.post("/jobs", content=gigabyte(), headers=JSON), 413)
    assert sent < 64 * MIB, "the rest was not even waited for"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("closed", [True, False])
def test_json_nested_100_000_deep_is_refused_with_flat_memory(api: ApiServer, opening: str, closed: bool) -> None:
    body = opening * 100_000 + ("1" + {"[": "]", "{": "}"}[opening[0]] * 100_000 if closed else "")
    with flat_memory(api):
        problem_of(api.http.post("/jobs", content=body, headers=JSON), 422)


def test_of_very_many_wrong_fields_the_first_hundred_are_told_and_how_many_there_are(api: ApiServer) -> None:
    problem = problem_of(api.post("/jobs", {"train": TRAIN} | {f"x{number}": 0 for number in range(4_000)}), 422)
    assert [each["field"] for each in problem["errors"]] == [f"x{number}" for number in range(100)]
    assert "4000 fields are wrong" in problem["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs", {"train": TRAIN | {"freeze": [1] * 300_000}}),
        ("/jobs/plan", {"train": {"recipe": "script", "options": {"script": "/a.py", "args": [0] * 300_000}}}),
        ("/jobs", {"train": TRAIN, "labels": {f"{number}": 0 for number in range(60_000)}}),
        ("/jobs/1/clone", {"changes": {"train": {"augment": [{}] * 200_000}}}),
        ("/jobs/1/checkpoints/prune", {"keep": [[1]] * 100_000}),
    ],
)
def test_a_body_of_very_many_values_is_refused_before_each_is_looked_at(
    api: ApiServer, path: str, body: dict[str, Any]
) -> None:
    """An error made of each would hold up every other request."""
    assert fields_of(api.post(path, body))["body"].startswith("more than 10000 values")


def test_a_spec_beyond_64_kib_is_refused_by_its_field_and_in_numbers_wherever_it_is_given(api: ApiServer) -> None:
    """A page of jobs shows each of them whole."""
    large = {"train": {"recipe": "script", "options": {"module": "own", "args": ["x" * 1000] * 65}}}
    job_id = api.submit(train={"recipe": "script", "options": {"module": "own", "args": ["x" * 1000] * 63}})

    for path, body in (
        ("/jobs", large),
        ("/jobs/plan", large),
        (f"/jobs/{job_id}/clone", {"changes": large}),
    ):
        message = fields_of(api.post(path, body))["train.options"]
        assert re.match("has 652[0-9]{2} bytes as JSON, of 6[6-7][0-9]{3} in all; a job may have 65536: ", message)


def test_a_body_that_is_announced_by_its_length_and_as_chunked_is_refused_and_ends_its_connection(
    api: ApiServer,
) -> None:
    """A proxy that goes by the other one would take a part of it for the next request, which may be somebody else's."""
    hidden = b"0\r\n\r\nPOST /jobs/1/cancel HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with closing(socket.create_connection(("127.0.0.1", api.port), timeout=20)) as connection:
        connection.sendall(head.encode() + hidden)
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answered.startswith(b"HTTP/1.1 400 ")
    assert answered.count(b"HTTP/1.1 ") == 1


OUTSIDE = [
    *("../../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
    *(
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..\\..\\etc\\passwd",
        "%00",
        "passwd%00.pt",
        "%2e%2e",
        "%252e%252e%252fetc%252fpasswd",
    ),
]


@pytest.mark.parametrize(
    "place",
    ["/%s", "/docs/%s", "/data-sets/%s", "/recipes/%s", "/hosts/%s", "/jobs/1/checkpoints/%s/file", "/jobs/1/%s"],
)
def test_no_path_leads_to_a_file_of_the_machine(api: ApiServer, place: str) -> None:
    """As they are, and not as a client has tidied them up."""
    api.submit()
    for name in OUTSIDE:
        with closing(http.client.HTTPConnection("127.0.0.1", api.port, timeout=20)) as connection:
            connection.request("GET", place % name)
            answer = connection.getresponse()
            content = answer.read()
        assert answer.status in (404, 422), (name, answer.status)
        assert answer.headers["Content-Type"] == "application/problem+json", name
        assert b"root:" not in content, name


@pytest.mark.parametrize("levels", [31, 200, 500, 900])
def test_json_that_is_deeper_than_what_can_be_shown_again_is_refused(api: ApiServer, levels: int) -> None:
    fields = fields_of(api.http.post("/jobs", content=deep(levels), headers=JSON))
    assert "nested" in fields["body"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"priority": 1, "priority": 99, "train": {"model": "m", "data": "d"}}', "'priority' is given twice"),
        ('{"train": {"model": "m", "data": "d", "lr": 1, "lr": 2}}', "'lr' is given twice"),
        ('{"labels": {"a": "1", "\\u0061": "2"}, "train": {}}', "'a' is given twice"),
        ('{"train": {"model": "m", "data": "d", "lr": NaN}}', "NaN is not JSON"),
        ('{"train": {"model": "m", "data": "d", "options": {"x": -Infinity}}}', "-Infinity is not JSON"),
        ('{"train": {"model": "m", "data": "d", "lr": 1e999}}', "1e999 is larger"),
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(api: ApiServer, body: str, message: str) -> None:
    assert message in fields_of(api.http.post("/jobs", content=body, headers=JSON))["body"]


def test_a_body_as_deep_as_a_job_may_be_is_taken(api: ApiServer) -> None:
    job_id = api.submit(device={"count": 1}, labels={"a": "b"}, name="deep enough")
    changed = api.post(f"/jobs/{job_id}/clone", {"changes": {"train": {"model": TRAIN["model"]}}})
    assert changed.status_code == 201, changed.text


def test_every_get_takes_head_and_sends_what_get_would_but_the_body(api: ApiServer) -> None:
    job_id = api.submit()
    for path in ("/jobs", f"/jobs/{job_id}", "/hosts", "/healthz", "/metrics", "/openapi.json", "/nothing"):
        got, headed = api.http.get(path), api.http.head(path)
        assert (headed.status_code, headed.content) == (got.status_code, b""), path
        assert headed.headers["Content-Type"] == got.headers["Content-Type"], path
        assert int(headed.headers["Content-Length"]) > 0, path


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", "GET, POST, HEAD"),
        ("OPTIONS", "/jobs", "GET, POST, HEAD"),
        ("TRACE", "/jobs/1", "GET, PATCH, HEAD"),
        ("POST", "/quotas/user/alice", "GET, PUT, DELETE, HEAD"),
        ("HEAD", "/jobs/1/cancel", "POST"),
        ("BREW", "/hosts", "GET, HEAD"),
        ("GET", "/jobs/plan", "POST"),
        ("OPTIONS", "/jobs/plan", "POST"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_told_all_that_it_takes(
    api: ApiServer, method: str, path: str, allowed: str
) -> None:
    answer = api.http.request(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)


def test_a_path_with_a_slash_at_its_end_is_another_path(api: ApiServer) -> None:
    for path in ("/jobs/", "/hosts/", "/healthz/", "//jobs"):
        problem_of(api.http.get(path), 404)


def test_every_whole_number_is_taken_in_plain_digits_alone(api: ApiServer) -> None:
    schema = api.http.get("/openapi.json").json()
    tried = 0
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", []):
                if "'integer'" in str(parameter["schema"]):
                    answer = api.http.request(method, _with(path, parameter, "1_0"))
                    assert parameter["name"] in fields_of(answer), (operation["operationId"], parameter["name"])
                    tried += 1
    assert tried > 20


def _with(path: str, parameter: dict[str, Any], value: str) -> str:
    """The path with this value of one parameter, and with a likely one of each other in it."""
    if parameter["in"] == "path":
        path = path.replace("{" + parameter["name"] + "}", value)
    for part in {each.strip("{}") for each in path.split("/") if each.startswith("{")}:
        path = path.replace("{" + part + "}", "1" if part.endswith("_id") else "user" if part == "kind" else "some")
    return path if parameter["in"] == "path" else f"{path}?{parameter['name']}={value}"
