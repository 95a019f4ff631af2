"""The whole API against its own schema, by schemathesis: no request that it can think of breaks either."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import ApiServer

SETTINGS = """
[checks.positive_data_acceptance]
# What fits the schema may still be refused: by the grammar of devices, for a cursor that nobody was given (422), for an
# ETag that is not the newest (412), for what the job's state does not allow (409).
expected-statuses = ["2xx", "3xx", 403, 404, 409, 412, 416, 422]
"""


def endless(schema: dict[str, Any]) -> list[str]:
    """The operations that answer with a stream of events, which ends when its client does."""
    return [
        operation["operationId"]
        for methods in schema["paths"].values()
        for operation in methods.values()
        if "text/event-stream" in operation["responses"].get("200", {}).get("content", {})
    ]


@pytest.mark.timeout(3600)
def test_no_request_breaks_the_service_or_its_schema(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> None:
    examples = request.config.getoption("--schema-examples")
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS)
    with ApiServer(database_url, tmp_path) as api:
        schema = api.http.get("/openapi.json").json()
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings)),
            *("run", f"{api.url}/openapi.json"),
            *("--checks", "all", "--phases", "examples,coverage,fuzzing,stateful", "--continue-on-failure"),
            *("--max-examples", str(examples), "--generation-deterministic"),
            # Without tokens, or it would revoke its own and be kept out. That each route asks for one, where they are
            # asked for, tests/unit/test_access.py holds.
            *("--exclude-checks", "ignored_auth", "--generation-with-security-parameters", "false"),
            *("--no-color", "--suppress-health-check", "all"),
            *(part for operation in endless(schema) for part in ("--exclude-operation-id", operation)),
        ]
        tried = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert tried.returncode == 0, tried.stdout[-60_000:] + tried.stderr[-2_000:]
        assert '"level": "error"' not in api.log.read_text()
