"""The page on the Python client: every block of it runs, in its order, and every method is on it."""

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.sealing import make_key
from jobs.states import Outcome
from jobs.store import hosts
from jobs.store.reports import LogPiece, MetricPoint
from rankzero import Client, errors, news
from rankzero.errors import RankzeroError, RefusedError
from rankzero.news import News
from tests.api_server import TRAIN
from tests.integration.checkpoint_files import SavingRun, saving
from tests.integration.conftest import copy_of_sqlite
from tests.integration.guarded_api import GuardedApi
from tests.integration.running_job import start_job
from tests.integration.store.conftest import Service

PAGE = "docs/client.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text()
RECIPE = {"name": "classification", "description": "one label each", "models": ["resnet18"], "options_schema": {}}
KNOWN = {"recipes": [RECIPE], "data": [{"name": "digits", "description": "handwritten"}], "train_schema": {}}
POLL_S = 0.05


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedApi]:
    """A service that asks for tokens, with a host that knows what the page trains."""
    folder = tmp_path_factory.mktemp("api")
    make_key(folder / "key")
    with GuardedApi(copy_of_sqlite(migrated_sqlite_template, folder), folder, key_file=folder / "key") as server:
        with server.database.session_scope() as session:
            hosts.register(session, "gpu-box", worker="1:1", run_root="/runs", devices=[])
            hosts.set_catalog(session, "gpu-box", KNOWN)
        yield server


class Trainer(threading.Thread):
    """Does the first job that is submitted as a host would."""

    def __init__(self, api: GuardedApi, run_root: Path) -> None:
        super().__init__()
        self._api = api
        self._run_root = run_root
        self.saved: SavingRun | None = None
        self.stopped = threading.Event()

    def run(self) -> None:
        with Client(self._api.url, token=self._api.tokens["root"]) as client:
            while not (waiting := list(client.list(state=["queued"], name="first"))):
                if self.stopped.wait(POLL_S):
                    return
        job = start_job(self._api.database, waiting[0].id)
        at = datetime.now(UTC)
        points = [MetricPoint("train/loss", step, 1, at, 1 / step) for step in range(1, 5)]
        job.add(
            metrics=[*points, MetricPoint("val/accuracy", 4, 1, at, None, "inf")],
            logs=[LogPiece(0, 0, "a Warning\nall is well\n")],
            progress={"step": 4, "total_steps": 4, "values": {"val/accuracy": 0.98}},
        )
        self.saved = saving(Service(self._api.database), job.placement, self._run_root)
        self.saved.save(4, best=True)
        job.end(Outcome.SUCCEEDED)


def test_every_block_runs_after_the_one_before_it(
    api: GuardedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKZERO_URL", api.url)
    monkeypatch.setenv("RANKZERO_TOKEN", api.tokens["root"])
    trainer = Trainer(api, tmp_path / "runs")
    trainer.start()
    names: dict[str, Any] = {}
    try:
        for found in re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
            # Its lines have the numbers that they have on the page.
            block = "\n" * TEXT.count("\n", 0, found.start(1)) + found[1]
            exec(compile(block, PAGE, "exec"), names)  # noqa: S102  # it is ours
    finally:
        trainer.stopped.set()
        trainer.join()
        if "client" in names:
            names["client"].close()

    printed = capsys.readouterr().out
    assert printed.startswith("succeeded 0.98\nroot admin tokens\n")
    assert trainer.saved is not None
    assert names["path"].read_bytes() == trainer.saved.contents[4]
    assert list(names["table"].columns) == ["train/loss", "val/accuracy"]
    assert names["table"]["val/accuracy"].tolist()[-1] == float("inf")
    assert [piece.text for piece in names["warnings"]] == ["a Warning\n"]
    assert (tmp_path / "job.log").read_text().startswith("==> attempt 1, rank 0 <==")
    assert names["token"].token not in printed + repr(names["token"])
    assert names["webhook"].key not in printed + repr(names["webhook"])
    assert "create_webhook" in printed
    assert printed.splitlines()[-1].startswith("422 ")


def test_every_method_error_and_news_is_on_the_page() -> None:
    methods = [name for name in dir(Client) if not name.startswith("_")]
    kinds = [name for name, each in vars(news).items() if isinstance(each, type) and issubclass(each, News)]
    raised = [
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, RankzeroError) and name not in ("EmbeddedError", "DemoError")
    ]
    missing = [name for name in [*methods, *raised] if not re.search(rf"\b{name}\b", TEXT)]
    assert missing == []
    told = [name for name in kinds if name not in ("News", "HostNews", "Hello", "Reset")]
    assert [name for name in told if name not in TEXT] == []


def test_a_client_with_a_token_acts_as_its_user_and_one_without_is_told_how_to_get_in(api: GuardedApi) -> None:
    with Client(api.url, token=api.tokens["alice"]) as client:
        assert (client.me().user, client.me().role) == ("alice", "submitter")
        assert client.submit(device="0", train=TRAIN).user == "alice"
        with pytest.raises(RefusedError, match="takes the role admin") as refused:
            list(client.users())
        assert refused.value.status == 403
    with Client(api.url) as client, pytest.raises(RefusedError, match="RANKZERO_TOKEN") as refused:
        client.me()
    assert refused.value.status == 401
