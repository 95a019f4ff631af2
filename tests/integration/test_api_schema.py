"""The whole API against its own schema, by schemathesis: no request that it can think of breaks either."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

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
# What fits the schema may still be refused: for an ETag that is not the newest (412), for what the state does not allow
# (409).
expected-statuses = ["2xx", "3xx", 403, 404, 409, 412, 416]

[[operations]]
include-operation-id = {picky}
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 403, 404, 409, 412, 416, 422]

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
PICKY = {
    "plan_job": "devices have a grammar",
    "resume_job": "devices have a grammar",
    "follow_events": "a number of nineteen digits may be too large for the feed",
    "list_logs": "some parameters go with others alone",
    "get_quota": "labels are key=value",
    "put_quota": "labels are key=value",
    "delete_quota": "labels are key=value",
}
"""Operations that answer 422 to what their schema allows, besides those below; and why it cannot say so."""
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


def picky(schema: dict[str, Any]) -> list[str]:
    """PICKY, and all that take a text that nobody made up: a cursor that was given, a key not given to another."""
    operations = [each for methods in schema["paths"].values() for each in methods.values()]
    found = [
        each["operationId"]
        for each in operations
        if any(parameter["name"] in ("cursor", "Idempotency-Key") for parameter in each.get("parameters", []))
    ]
    assert set(PICKY) <= {each["operationId"] for each in operations}
    return sorted({*PICKY, *found})


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
    (tmp_path / "hooks.py").write_text(HOOKS)
    make_key(tmp_path / "key")
    with GuardedApi(database_url, tmp_path, key_file=tmp_path / "key", rate_limit=0) as api:
        furnish(api)
        schema = api.http.get("/openapi.json").json()
        settings = SETTINGS.format(
            picky=json.dumps(picky(schema)), chains=4 * examples, mode=mode, again=str(is_long).lower()
        )
        (tmp_path / "schemathesis.toml").write_text(settings)
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
