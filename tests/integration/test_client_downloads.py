"""Checkpoints and output on the way to this machine: whole, with the hash that they were saved with, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from jobs.states import Outcome
from jobs.store.reports import LogPiece
from jobs.tables import Checkpoint
from rankzero import Client
from rankzero.errors import DownloadError, RefusedError, UnreachableError, UsageError
from tests.api_server import ApiServer
from tests.integration.checkpoint_files import SavingRun, saving
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import saved, start_job
from tests.integration.store.conftest import Service
from tests.proxy import Proxy

LARGE = 6_000_000
"""Bytes that no socket takes at once."""


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API on one engine: a file comes from a disk, whatever the database."""
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def run(api: ApiServer, tmp_path: Path) -> SavingRun:
    """A job that has saved two small checkpoints, the first of which is its best."""
    job = start_job(api.database, api.submit(device="0,1"))
    run = saving(Service(api.database), job.placement, tmp_path / "runs")
    run.save(1, best=True)
    run.save(2)
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def files_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_the_best_the_last_and_any_other_are_downloaded_to_a_file_or_into_a_folder(
    api: ApiServer, run: SavingRun, folder: Path
) -> None:
    job_id = run.placement.job_id
    with api.client() as client:
        assert client.download_checkpoint(job_id, "best", folder / "best.pt").read_bytes() == run.contents[1]
        path = client.download_checkpoint(job_id, "last", folder)
        assert (path.name, path.read_bytes()) == (f"job-{job_id}-step-2.pt", run.contents[2])
        first = client.checkpoint(job_id, "best")
        client.download_checkpoint(job_id, first.id, path)
        assert path.read_bytes() == run.contents[1]  # what was there is replaced
    assert files_in(folder) == ["best.pt", path.name]


def test_a_download_that_breaks_off_goes_on_where_it_was(api: ApiServer, run: SavingRun, folder: Path) -> None:
    large = b"weights" * (LARGE // 7)
    run.save(3, content=large)
    there: list[int] = []
    with Proxy(api.url) as proxy, Client(proxy.url) as client:

        def note(done: int, of: int) -> None:
            assert of == len(large)
            if len(there) % 20 == 10:
                with proxy.refusing():  # every connection breaks
                    pass
            there.append(done)

        path = client.download_checkpoint(run.placement.job_id, "last", folder, on_progress=note)
    assert path.read_bytes() == large
    assert there == sorted(set(there))  # no byte came twice
    assert files_in(folder) == [path.name]


def test_a_download_that_was_given_up_goes_on_in_the_next_call(api: ApiServer, run: SavingRun, folder: Path) -> None:
    large = b"weights" * (LARGE // 7)
    run.save(3, content=large)
    there: list[int] = []
    with Proxy(api.url) as proxy, Client(proxy.url, patience_s=0.3) as client:

        def give_up(done: int, _of: int) -> None:
            there.append(done)
            if done > LARGE // 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            client.download_checkpoint(run.placement.job_id, "last", folder / "it.pt", on_progress=give_up)
        (part,) = files_in(folder)
        assert part.endswith(".part")

        with proxy.refusing(), pytest.raises(UnreachableError):
            client.download_checkpoint(run.placement.job_id, "last", folder / "it.pt")
        path = client.download_checkpoint(
            run.placement.job_id, "last", folder / "it.pt", on_progress=lambda done, _of: there.append(done)
        )
    assert path.read_bytes() == large
    assert there == sorted(set(there))
    assert files_in(folder) == ["it.pt"]


def test_what_arrives_damaged_is_not_there(api: ApiServer, run: SavingRun, folder: Path) -> None:
    with api.client() as client, api.database.session_scope() as session:
        session.execute(update(Checkpoint).where(Checkpoint.job_id == run.placement.job_id).values(sha256="f" * 64))
        session.commit()
        with pytest.raises(DownloadError, match="arrived damaged"):
            client.download_checkpoint(run.placement.job_id, "best", folder / "best.pt")
    assert files_in(folder) == []


def test_where_the_service_cannot_read_the_file_the_error_says_who_has_it(api: ApiServer, folder: Path) -> None:
    job = start_job(api.database, api.submit(device="0,1"))
    job.add(checkpoint=saved("/somewhere/1.pt"))
    with api.client() as client, pytest.raises(RefusedError, match=r"take /somewhere/1\.pt from host") as refused:
        client.download_checkpoint(job.job_id, "best", folder / "best.pt")
    assert "saved outside of its run's directory" in str(refused.value)
    assert (refused.value.status, refused.value.problem["path"]) == (409, "/somewhere/1.pt")
    assert files_in(folder) == []


def test_a_checkpoint_that_there_is_not_and_a_place_that_there_is_not_are_errors(
    api: ApiServer, run: SavingRun, folder: Path
) -> None:
    other = api.submit()
    with api.client() as client:
        with pytest.raises(UsageError, match="no checkpoint that is its best"):
            client.download_checkpoint(other, "best", folder)
        with pytest.raises(RefusedError, match="has no checkpoint"):
            client.download_checkpoint(run.placement.job_id, 999_999, folder)
        with pytest.raises(DownloadError, match="No such file or directory"):
            client.download_checkpoint(run.placement.job_id, "best", folder / "nowhere" / "best.pt")
    assert files_in(folder) == []


def test_checkpoints_are_deleted_and_pruned_but_for_what_a_run_needs(api: ApiServer, run: SavingRun) -> None:
    job_id = run.placement.job_id
    run.save(3)
    with api.client() as client:
        first, second, third = client.checkpoints(job_id)
        with pytest.raises(RefusedError, match="still runs"):
            client.delete_checkpoint(job_id, second.id)
        run.service.end(run.placement, Outcome.SUCCEEDED)
        client.delete_checkpoint(job_id, second.id)
        pruned = client.prune_checkpoints(job_id, keep=["last"])
        assert ([each.id for each in pruned.removed], [each.id for each in pruned.kept]) == ([first.id], [third.id])
        assert [each.id for each in client.checkpoints(job_id)] == [third.id]
        everything = list(client.checkpoints(job_id, with_removed=True))
        assert [each.removed_at is None for each in everything] == [False, False, True]


def test_output_is_downloaded_under_headings_or_of_one_rank_alone(api: ApiServer, folder: Path) -> None:
    job = start_job(api.database, api.submit(device="0,1"))
    job.add(logs=[LogPiece(0, 0, "one\n"), LogPiece(1, 0, "two\n")])
    with api.client() as client:
        whole = client.download_logs(job.job_id, folder)
        assert whole.read_text().splitlines()[:2] == ["==> attempt 1, rank 0 <==", "one"]
        alone = client.download_logs(job.job_id, folder / "rank-1.log", rank=1, attempt=1)
        assert alone.read_text() == "two\n"
        with pytest.raises(RefusedError, match="no job"):
            client.download_logs(999_999, folder / "none.log")
    assert files_in(folder) == [whole.name, "rank-1.log"]
