"""Checkpoints over HTTP: shown, downloaded whole and in part, removed; and no other file, whatever is tried."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from s3fs import S3FileSystem
from sqlalchemy import update

from jobs.states import Outcome
from jobs.store import reports
from jobs.tables import Checkpoint
from tests.api_server import ApiServer
from tests.integration.checkpoint_files import SavingRun, name, saving
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import saved, start_job
from tests.integration.store.conftest import Service
from tests.integration.test_api_errors import problem_of
from tests.object_store import ROOT, ObjectStore
from tests.waiting import wait_until
from worker import storage
from worker.files import Files

SECRET = b"of nobody's business"


def run_on(api: ApiServer, run_root: Path, **fields: Any) -> SavingRun:
    """A job that runs, and may save checkpoints."""
    job = start_job(api.database, api.submit(device="0,1", **fields))
    return saving(Service(api.database), job.placement, run_root)


@pytest.fixture
def run(api: ApiServer, tmp_path: Path) -> SavingRun:
    return run_on(api, tmp_path / "runs")


def finish(run: SavingRun, outcome: Outcome = Outcome.SUCCEEDED) -> None:
    run.service.end(run.placement, outcome)


def path_of(run: SavingRun, step: int) -> str:
    return f"/jobs/{run.placement.job_id}/checkpoints/{run.checkpoints(with_removed=True)[step].id}"


def ids_of(answer: httpx2.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [each["step"] for each in answer.json()["items"]]


def look(run: SavingRun) -> None:
    """Have the host's worker remove what is to go."""
    Files(run.database, run.placement.host_name).look()


def test_a_checkpoint_is_shown_by_its_id_and_the_best_and_the_last_are_found(api: ApiServer, run: SavingRun) -> None:
    for step in (1, 2, 3):
        run.save(step, best=step == 2)
    shown = api.http.get(path_of(run, 2)).json()
    assert (shown["step"], shown["best"], shown["removed_at"]) == (2, True, None)
    listed = f"/jobs/{run.placement.job_id}/checkpoints"
    assert ids_of(api.http.get(listed, params={"best": True})) == [2]
    assert ids_of(api.http.get(listed, params={"last": True})) == [3]
    assert ids_of(api.http.get(listed, params={"best": True, "last": True})) == []
    assert problem_of(api.http.get(f"{listed}/{2**40}"), 404)
    other = api.submit()
    assert problem_of(api.http.get(path_of(run, 2).replace(str(run.placement.job_id), str(other), 1)), 404)


def test_a_checkpoint_is_downloaded_whole_under_a_name_and_the_etag_of_its_hash(api: ApiServer, run: SavingRun) -> None:
    run.save(7)
    answer = api.http.get(f"{path_of(run, 7)}/file")
    assert answer.status_code == 200, answer.text
    assert answer.content == run.contents[7]
    assert answer.headers["etag"] == f'"{sha256(run.contents[7]).hexdigest()}"'
    assert answer.headers["content-type"] == "application/octet-stream"
    wanted = f'attachment; filename="job-{run.placement.job_id}-step-7.pt"'
    assert answer.headers["content-disposition"] == wanted
    again = api.http.get(f"{path_of(run, 7)}/file", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [("bytes=0-9", 0, 10), ("bytes=10-", 10, None), ("bytes=-5", -5, None), ("bytes=5-99999999", 5, None)],
)
def test_a_range_of_a_checkpoint_is_sent_alone(
    api: ApiServer, run: SavingRun, asked: str, begin: int, end: int | None
) -> None:
    run.save(1)
    content, path = run.contents[1], f"{path_of(run, 1)}/file"
    part = api.http.get(path, headers={"Range": asked})
    assert (part.status_code, part.content) == (206, content[begin:end])
    first = begin % len(content)
    assert part.headers["content-range"] == f"bytes {first}-{first + len(part.content) - 1}/{len(content)}"
    same = api.http.get(path, headers={"Range": asked, "If-Range": part.headers["etag"]})
    assert (same.status_code, same.content) == (206, content[begin:end])
    of_another = api.http.get(path, headers={"Range": asked, "If-Range": '"another"'})
    assert (of_another.status_code, of_another.content) == (200, content)


def test_a_range_behind_the_end_is_refused_and_what_is_none_is_ignored(api: ApiServer, run: SavingRun) -> None:
    run.save(1)
    size, path = len(run.contents[1]), f"{path_of(run, 1)}/file"
    for asked in (f"bytes={size}-", "bytes=-0", f"bytes={10**18}-"):
        answer = api.http.get(path, headers={"Range": asked})
        assert problem_of(answer, 416)
        assert answer.headers["content-range"] == f"bytes */{size}"
    for asked in ("bytes=9-0", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=a-b", f"bytes={'9' * 5000}-"):
        answer = api.http.get(path, headers={"Range": asked})
        assert (answer.status_code, answer.content) == (200, run.contents[1])


def test_a_large_checkpoint_is_sent_a_block_at_a_time(api: ApiServer, run: SavingRun) -> None:
    run.save(1)
    path, size = run.run_dir.checkpoints / name(1), 256 * 1024**2
    with path.open("r+b") as file:
        file.truncate(size)  # all holes: it costs no disk
    with run.database.session_scope() as session:
        session.execute(update(Checkpoint).where(Checkpoint.path == str(path)).values(size_bytes=size))
    api.http.get(f"{path_of(run, 1)}/file", headers={"Range": "bytes=0-0"})
    before = psutil.Process(api.pid).memory_info().rss
    received = 0
    with api.http.stream("GET", f"{path_of(run, 1)}/file") as answer:
        for block in answer.iter_raw():
            received += len(block)
    assert received == size
    assert psutil.Process(api.pid).memory_info().rss - before < 64 * 1024**2
    with api.http.stream("GET", f"{path_of(run, 1)}/file") as answer:
        next(answer.iter_raw())  # and then it has gone
    wait_until(
        lambda: str(path) not in [each.path for each in psutil.Process(api.pid).open_files()],
        timeout_s=20,
        what="the file to be closed",
    )


def test_where_a_file_is_that_the_api_cannot_read_is_told(api: ApiServer, run: SavingRun) -> None:
    path = run.save(1)
    (run.run_dir.path.parent.parent / ".rankzero-storage").write_text("another machine's\n")
    with run.database.session_scope() as session:
        session.execute(update(Checkpoint).where(Checkpoint.path == str(path)).values(copy_url="s3://elsewhere/1.pt"))
    problem = problem_of(api.http.get(f"{path_of(run, 1)}/file"), 409)
    assert (problem["host"], problem["path"]) == (run.placement.host_name, str(path))
    assert problem["copy_url"] == "s3://elsewhere/1.pt"
    assert run.placement.host_name in problem["detail"]


def test_a_file_that_was_written_over_since_is_not_sent(api: ApiServer, run: SavingRun) -> None:
    run.save(1).write_bytes(b"another")
    assert "written over" in problem_of(api.http.get(f"{path_of(run, 1)}/file"), 409)["detail"]


def test_no_link_no_other_file_and_no_folder_is_served_in_the_place_of_a_checkpoint(
    api: ApiServer, run: SavingRun, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.pt"
    secret.write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "weights.pt").write_bytes(SECRET)
    own = run.run_dir.checkpoints
    (own / "link.pt").symlink_to(secret)
    (own / "folder").symlink_to(tmp_path / "outside")
    (own / "real").mkdir()
    storage_id = storage.storage_of_run(run.run_dir.path)
    paths = [
        str(own / "link.pt"),
        str(own / "folder" / "weights.pt"),
        str(own / "real"),
        f"{own}/../../../../secret.pt",
        str(secret),
        f"{run.run_dir.path}/../attempt-1-token/checkpoints/link.pt",
        str(run.run_dir.path),
    ]
    for step, path in enumerate(paths, start=1):
        file = replace(saved(path, step=step), size_bytes=len(SECRET), storage=storage_id)
        with run.database.session_scope() as session:
            reports.add_checkpoint(session, run.placement, file)
        answer = api.http.get(f"{path_of(run, step)}/file")
        assert problem_of(answer, 409), path
        assert SECRET not in answer.content


@pytest.mark.parametrize(
    "place",
    ["../1", "%2e%2e%2f1", "..%2f..%2fetc%2fpasswd", "1%00", "%2fetc%2fpasswd", "1%2f..%2f2", "-1", "0", "9" * 30, "a"],
)
def test_what_is_no_id_of_a_checkpoint_leads_nowhere(api: ApiServer, run: SavingRun, place: str) -> None:
    run.save(1)
    for end in ("", "/file"):
        url = f"{api.url}/jobs/{run.placement.job_id}/checkpoints/{place}{end}"
        answer = api.http.get(url)
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"].startswith("application/problem+json")


@pytest.fixture
def with_store(
    migrated_sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ApiServer, ObjectStore]]:
    """The API of a service whose checkpoint root is in an object store."""
    with ObjectStore() as store:
        for variable, value in (store.variables | {"RANKZERO_CHECKPOINT_ROOT": ROOT}).items():
            monkeypatch.setenv(variable, value)
        with api_on_sqlite(migrated_sqlite_template, tmp_path) as server:
            yield server, store


def test_a_copy_in_an_object_store_is_served_whole_and_in_part_and_named_where_the_store_is_silent(
    with_store: tuple[ApiServer, ObjectStore], tmp_path: Path
) -> None:
    api, store = with_store
    run = run_on(api, tmp_path / "runs")
    path = run.save(1)
    copy = f"{ROOT}/job-1/{path.name}"
    S3FileSystem().pipe_file(copy, run.contents[1])
    path.unlink()
    with run.database.session_scope() as session:
        session.execute(update(Checkpoint).values(copy_url=copy))
    whole = api.http.get(f"{path_of(run, 1)}/file")
    assert (whole.status_code, whole.content) == (200, run.contents[1]), whole.text
    part = api.http.get(f"{path_of(run, 1)}/file", headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, run.contents[1][5:10])
    store.stop()
    assert problem_of(api.http.get(f"{path_of(run, 1)}/file"), 409)["copy_url"] == copy


@pytest.fixture
def with_root(migrated_sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """The API of a service that has a checkpoint root."""
    monkeypatch.setenv("RANKZERO_CHECKPOINT_ROOT", str(tmp_path / "copies"))
    with api_on_sqlite(migrated_sqlite_template, tmp_path) as server:
        yield server


def test_a_copy_is_served_where_the_file_is_not_here_but_from_the_services_own_root_alone(
    with_root: ApiServer, tmp_path: Path
) -> None:
    run = run_on(with_root, tmp_path / "runs")
    path = run.save(1)
    for root, status in (("copies", 200), ("named-by-a-user", 409)):
        copy = tmp_path / root / "job-1" / path.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(run.contents[1])
        path.unlink(missing_ok=True)
        with run.database.session_scope() as session:
            session.execute(update(Checkpoint).values(copy_url=str(copy)))
        answer = with_root.http.get(f"{path_of(run, 1)}/file")
        assert answer.status_code == status, answer.text
        assert (answer.content == run.contents[1]) == (status == 200)


def test_a_removed_checkpoint_is_gone_at_once_and_its_host_deletes_file_and_copy(
    api: ApiServer, run: SavingRun, tmp_path: Path
) -> None:
    path = run.save(1)
    copies = tmp_path / "copies"
    copies_id = storage.mark(copies)
    copy = copies / "job-1" / path.name
    copy.parent.mkdir()
    copy.write_bytes(run.contents[1])
    with run.database.session_scope() as session:
        mine = update(Checkpoint).where(Checkpoint.path == str(path))
        session.execute(mine.values(copy_url=str(copy), copy_storage=copies_id))
    finish(run)
    assert api.http.delete(path_of(run, 1)).status_code == 204
    assert api.http.delete(path_of(run, 1)).status_code == 204
    assert ids_of(api.http.get(f"/jobs/{run.placement.job_id}/checkpoints")) == []
    shown = api.http.get(path_of(run, 1)).json()
    assert shown["removed_at"] is not None
    assert shown["doomed_at"] is not None
    assert problem_of(api.http.get(f"{path_of(run, 1)}/file"), 404)
    look(run)
    assert not path.exists()
    assert not copy.exists()
    shown = api.http.get(path_of(run, 1)).json()
    assert (shown["doomed_at"], shown["copy_url"]) == (None, None)


def test_a_file_on_a_folder_that_is_not_there_waits_and_a_link_in_its_way_is_not_followed(
    api: ApiServer, run: SavingRun, tmp_path: Path
) -> None:
    path = run.save(1)
    finish(run)
    api.http.delete(path_of(run, 1))
    mark = tmp_path / "runs" / ".rankzero-storage"
    text = mark.read_text()
    mark.unlink()
    look(run)
    assert path.exists()
    mark.write_text(text)
    moved = tmp_path / "moved"
    path.parent.rename(moved)
    path.parent.symlink_to(moved)
    look(run)
    assert (moved / path.name).exists()
    assert api.http.get(path_of(run, 1)).json()["doomed_at"] is not None
    path.parent.unlink()
    moved.rename(path.parent)
    look(run)
    assert not path.exists()


def test_what_a_run_may_still_need_is_not_removed_and_the_refusal_names_it(api: ApiServer, run: SavingRun) -> None:
    for step in (1, 2):
        run.save(step)
    job_id = run.placement.job_id
    assert "still runs" in problem_of(api.http.delete(path_of(run, 1)), 409)["detail"]
    finish(run, Outcome.LOST)
    assert f"job {job_id} is queued" in problem_of(api.http.delete(path_of(run, 2)), 409)["detail"]
    assert api.http.delete(path_of(run, 1)).status_code == 204
    api.http.post(f"/jobs/{job_id}/cancel")
    start = {"job": job_id, "mode": "resume"}
    other = api.submit(start_from=start)
    assert f"job {other} starts from it" in problem_of(api.http.delete(path_of(run, 2)), 409)["detail"]
    api.http.post(f"/jobs/{other}/cancel")
    assert api.http.delete(path_of(run, 2)).status_code == 204
    refused = api.post("/jobs", {"device": "cpu", "train": {"model": "mlp", "data": "digits"}, "start_from": start})
    assert "no checkpoint" in problem_of(refused, 422)["detail"]


def test_a_checkpoint_that_a_program_has_saved_elsewhere_is_its_own_to_remove(api: ApiServer, run: SavingRun) -> None:
    run.save(1)
    with run.database.session_scope() as session:
        mine = update(Checkpoint).where(Checkpoint.job_id == run.placement.job_id)
        session.execute(mine.values(path="/home/me/last.pt", storage=None))
    finish(run)
    assert "/home/me/last.pt" in problem_of(api.http.delete(path_of(run, 1)), 409)["detail"]


def test_all_checkpoints_but_the_best_and_the_last_are_removed_at_once(api: ApiServer, run: SavingRun) -> None:
    for step in range(1, 6):
        run.save(step, best=step == 2)
    path = f"/jobs/{run.placement.job_id}/checkpoints/prune"
    running = api.post(path, {"keep": []}).json()
    assert ([each["step"] for each in running["kept"]], running["removed"]) == ([1, 2, 3, 4, 5], [])
    finish(run)
    answer = api.post(path, {"keep": ["best", "last"]})
    assert answer.status_code == 200, answer.text
    assert [each["step"] for each in answer.json()["removed"]] == [1, 3, 4]
    assert [each["step"] for each in answer.json()["kept"]] == [2, 5]
    look(run)
    assert sorted(each.name for each in run.run_dir.checkpoints.iterdir()) == [name(2), name(5)]
    assert [each["step"] for each in api.post(path, {"keep": []}).json()["removed"]] == [2, 5]
    for body in ({}, {"keep": ["first"]}, {"keep": "best"}, {"keep": [], "force": True}):
        assert problem_of(api.post(path, body), 422)


def test_a_program_that_saves_to_the_path_of_a_removed_checkpoint_keeps_its_new_file(
    api: ApiServer, run: SavingRun
) -> None:
    path = run.save(1)
    with run.database.session_scope() as session:
        gone = update(Checkpoint).where(Checkpoint.path == str(path))
        at = run.service.job(run.placement.job_id).created_at
        session.execute(gone.values(removed_at=at, doomed_at=at, sha256="1" * 64))
        file = replace(saved(str(path)), storage=storage.storage_of_run(run.run_dir.path))
        reports.add_checkpoint(session, run.placement, file)
    look(run)
    assert path.exists()
    assert api.http.get(path_of(run, 1)).json()["doomed_at"] is None
