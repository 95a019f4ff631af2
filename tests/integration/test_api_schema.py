"""The whole API against its own schema, by schemathesis: no request that it can think of breaks either."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from jobs.sealing import make_key
from jobs.states import Outcome
from jobs.store.reports import LogPiece, MetricPoint
from tests.integration.guarded_api import GuardedApi
from tests.integration.running_job import saved, start_job

SETTINGS = """
hooks = "hooks.py"

[headers]
Authorization = "Bearer ${{TOKEN_OF_THE_RUN}}"

[checks.positive_data_acceptance]
# What fits the schema may still be refused: by the grammar of devices, for a cursor that nobody was given (422), for an
# ETag that is not the newest (412), for what the job's state does not allow (409).
expected-statuses = ["2xx", "3xx", 403, 404, 409, 412, 416, 422]

[phases.stateful.generation]
max-examples = {chains}

[phases.coverage.generation]
mode = "{mode}"

[[operations]]
include-operation-id = "follow_events"
max-stream-events = 1  # the first comes at once, and the next may never

[[operations]]
include-operation-id = "plan_job"
phases.coverage.enabled = {again}  # its body is the one of submit_job
"""
SHORT = 3
"""Requests for each operation with which a run is short: what no database has a part in is tried with one of them."""
HOOKS = """
import schemathesis

OWN = {"DELETE /tokens/{token_id}": ("token_id", "1"), "PATCH /users/{name}": ("name", "root")}


@schemathesis.hook
def before_call(context, case, kwargs):
    # A run that revoked its own token, or disabled its user, would be kept out of all that follows.
    parameter, own = OWN.get(case.operation.label, ("", ""))
    if own and str(case.path_parameters.get(parameter)) == own:
        case.path_parameters[parameter] = "999"
"""


def furnish(api: GuardedApi) -> None:
    """Give the lists something to show, and the verbs something to act on."""
    lost = start_job(api.database, api.submit_by("alice", device="0"))
    lost.end(Outcome.FAILED, failure={"cause": "data", "message": "no such file"})
    job = start_job(api.database, api.submit_by("alice", device="0,1", labels={"team": "vision"}))
    at = datetime.now(UTC)
    values = [(0.5, None), (None, "nan"), (None, "inf"), (None, "-inf")]
    job.add(
        metrics=[MetricPoint("точность", step, 1, at, *each) for step, each in enumerate(values)],
        checkpoint=saved("/runs/best.pt"),
        logs=[LogPiece(0, 0, "é\n"), LogPiece(1, 0, "b\n")],
        progress={"step": 3, "total_steps": 9},
    )


@pytest.mark.timeout(3600)
def test_no_request_breaks_the_service_or_its_schema(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> None:
    examples = request.config.getoption("--schema-examples")
    is_long = examples > SHORT
    seed = Random(request.config.getoption("--seed")).getrandbits(32)
    draws = ["--seed", str(seed)] if is_long else ["--generation-deterministic"]
    mode = "all" if is_long or database_url.startswith("sqlite") else "positive"
    settings = SETTINGS.format(chains=4 * examples, mode=mode, again=str(is_long).lower())
    (tmp_path / "schemathesis.toml").write_text(settings)
    (tmp_path / "hooks.py").write_text(HOOKS)
    make_key(tmp_path / "key")
    with GuardedApi(database_url, tmp_path, key_file=tmp_path / "key", rate_limit=0) as api:
        furnish(api)
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
            *("run", f"{api.url}/openapi.json"),
            *("--checks", "all", "--phases", "examples,coverage,fuzzing,stateful", "--continue-on-failure"),
            *("--max-examples", str(examples), *draws),
            *("--generation-with-security-parameters", "false"),
            *("--no-color", "--suppress-health-check", "all"),
        ]
        environment = os.environ | {"TOKEN_OF_THE_RUN": api.tokens["root"]}
        tried = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert tried.returncode == 0, tried.stdout[-60_000:] + tried.stderr[-2_000:]
        assert '"level": "error"' not in api.log.read_text()
        assert api.by("root").get("/me").status_code == 200, "the run was kept out"
