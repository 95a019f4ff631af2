"""Output of the ranks over HTTP: its last lines, a search, and downloads."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.states import Outcome
from jobs.store.reports import LogPiece
from tests.api_server import ApiServer
from tests.integration.running_job import RunningJob, start_job

FIRST = "Привет\nerror: one\nx\n"
SECOND = "tail end\nno newline"
OTHER = "b\nERROR: Ошибка 50%\n"
WHOLE = (FIRST + SECOND).encode()


@pytest.fixture(scope="module")
def run(api: ApiServer) -> Iterator[RunningJob]:
    """A job with two ranks, each of which has printed something."""
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, FIRST), LogPiece(1, 0, OTHER)])
    run.add(logs=[LogPiece(0, len(FIRST.encode()), SECOND)])
    yield run
    run.end(Outcome.SUCCEEDED)


def read(api: ApiServer, run: RunningJob, **params: Any) -> Any:
    answer = api.http.get(f"/jobs/{run.job_id}/logs", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def parts(answer: Any) -> list[tuple[int, int, str]]:
    return [(item["rank"], item["offset"], item["text"]) for item in answer["items"]]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (1, [(1, 2, "ERROR: Ошибка 50%\n"), (0, 35, "no newline")]),
        (2, [(1, 0, OTHER), (0, 26, SECOND)]),
        (3, [(0, 24, "x\n"), (1, 0, OTHER), (0, 26, SECOND)]),
        (9, [(0, 0, FIRST), (1, 0, OTHER), (0, 26, SECOND)]),
    ],
)
def test_the_last_lines_of_each_rank_are_shown_in_the_order_they_came(
    api: ApiServer, run: RunningJob, lines: int, found: list[tuple[int, int, str]]
) -> None:
    assert parts(read(api, run, tail=lines)) == found


def test_what_is_printed_after_the_last_lines_is_followed(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "1\n2\n"), LogPiece(1, 0, "1\n")])
    last = read(api, run, tail=1)
    assert parts(last) == [(0, 2, "2\n"), (1, 0, "1\n")]
    run.add(logs=[LogPiece(0, 4, "3\n")])
    assert parts(read(api, run, after=last["after"])) == [(0, 4, "3\n")]
    run.end(Outcome.SUCCEEDED)


def test_a_job_that_has_printed_nothing_has_no_last_lines(api: ApiServer) -> None:
    answer = api.http.get(f"/jobs/{api.submit()}/logs", params={"tail": 5})
    assert answer.json() == {"items": [], "after": 0}


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"search": "error"}, [(0, 13, "error: one\n")]),
        ({"search": "error", "ignore_case": True}, [(0, 13, "error: one\n"), (1, 2, "ERROR: Ошибка 50%\n")]),
        ({"search": "ошибка", "ignore_case": True}, [(1, 2, "ERROR: Ошибка 50%\n")]),
        ({"search": "50%"}, [(1, 2, "ERROR: Ошибка 50%\n")]),
        ({"search": "e_d"}, []),
        (
            {"search": "n", "rank": 0, "attempt": 1},
            [(0, 13, "error: one\n"), (0, 26, "tail end\n"), (0, 35, "no newline")],
        ),
        ({"search": "newline", "rank": 1}, []),
    ],
)
def test_lines_are_found_by_a_text_with_the_byte_at_which_they_begin(
    api: ApiServer, run: RunningJob, params: dict[str, Any], found: list[tuple[int, int, str]]
) -> None:
    assert parts(read(api, run, **params)) == found
    assert all(WHOLE[offset:].startswith(text.encode()) for rank, offset, text in found if rank == 0)


def test_a_search_goes_on_where_its_limit_ended_it(api: ApiServer, run: RunningJob) -> None:
    first = read(api, run, search="n", limit=1)
    second = read(api, run, search="n", limit=1, after=first["after"])
    assert parts(first) == [(0, 13, "error: one\n")]
    assert parts(second) == [(0, 26, "tail end\n"), (0, 35, "no newline")]
    assert read(api, run, search="n", after=second["after"])["items"] == []


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"tail": 0}, "tail"),
        ({"tail": 1, "after": 0}, "after"),
        ({"tail": 1, "search": "x"}, "search"),
        ({"search": ""}, "search"),
        ({"ignore_case": True}, "ignore_case"),
    ],
)
def test_what_does_not_go_together_is_refused(
    api: ApiServer, run: RunningJob, params: dict[str, Any], field: str
) -> None:
    answer = api.http.get(f"/jobs/{run.job_id}/logs", params=params)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == [field]


def download(api: ApiServer, run: RunningJob, requested: str | None = None, **params: Any) -> Any:
    headers = {} if requested is None else {"Range": requested}
    return api.http.get(f"/jobs/{run.job_id}/logs/download", params=params, headers=headers)


def test_one_rank_s_output_is_downloaded_to_the_byte(api: ApiServer, run: RunningJob) -> None:
    answer = download(api, run, rank=0, attempt=1)
    assert answer.content == WHOLE
    assert answer.headers["Content-Length"] == str(len(WHOLE))
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert f"job-{run.job_id}-attempt-1-rank-0.log" in answer.headers["Content-Disposition"]


def test_the_output_of_all_ranks_has_a_heading_for_each(api: ApiServer, run: RunningJob) -> None:
    expected = f"==> attempt 1, rank 0 <==\n{FIRST}{SECOND}\n\n==> attempt 1, rank 1 <==\n{OTHER}\n"
    assert download(api, run).text == expected


@pytest.mark.parametrize(
    ("requested", "begin", "end"),
    [("bytes=0-5", 0, 6), ("bytes=30-", 30, None), ("bytes=-7", -7, None), ("bytes=20-30", 20, 31)],
)
def test_a_range_of_a_download_is_answered_alone(
    api: ApiServer, run: RunningJob, requested: str, begin: int, end: int | None
) -> None:
    answer = download(api, run, requested, rank=0, attempt=1)
    assert answer.status_code == 206
    assert answer.content == WHOLE[begin:end]
    first = begin % len(WHOLE)
    assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(answer.content) - 1}/{len(WHOLE)}"


def test_a_range_behind_the_end_is_refused_with_the_size(api: ApiServer, run: RunningJob) -> None:
    answer = download(api, run, "bytes=1000-", rank=0, attempt=1)
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{len(WHOLE)}"


def test_a_range_of_several_streams_is_answered_with_the_whole(api: ApiServer, run: RunningJob) -> None:
    answer = download(api, run, "bytes=0-5")
    assert answer.status_code == 200
    assert "Accept-Ranges" not in answer.headers


def test_a_download_is_longer_than_what_is_read_at_once(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    lines = [f"line {number} ümlaut\n" for number in range(100)]
    offset = 0
    for line in lines:
        run.add(logs=[LogPiece(0, offset, line)])
        offset += len(line.encode())
    whole = "".join(lines).encode()
    assert download(api, run, rank=0, attempt=1).content == whole
    assert download(api, run, "bytes=500-1500", rank=0, attempt=1).content == whole[500:1501]
    run.end(Outcome.SUCCEEDED)
