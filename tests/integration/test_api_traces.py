"""Traces: a span for each request where a tracer is set up, with what joins it to the log; none for probes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import copy_of_sqlite

PROGRAM = """
import json
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from api.app import create_app
from jobs.access import Access

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
with TestClient(create_app(Access.LOOPBACK), base_url="http://localhost", client=("127.0.0.1", 1)) as client:
    for path in ("/jobs/7", "/healthz", "/metrics", "/jobs?token=rz_" + "A" * 43):
        client.get(path, headers={
            "X-Request-ID": "mine", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        })
spans = [span for span in exporter.get_finished_spans() if span.kind is trace.SpanKind.SERVER]
print(json.dumps([[span.name, trace.format_trace_id(span.context.trace_id), dict(span.attributes)] for span in spans]))
"""


@pytest.fixture(scope="module")
def traced(
    migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """A process of its own: a tracer is for a process, and for good."""
    folder = tmp_path_factory.mktemp("traced")
    environment = os.environ | {"RANKZERO_DATABASE_URL": copy_of_sqlite(migrated_sqlite_template, folder)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True, cwd=folder, env=environment
    )


def test_a_request_is_a_span_of_its_callers_trace_with_its_id_and_probes_are_none(
    traced: subprocess.CompletedProcess[str],
) -> None:
    ((name, trace_id, attributes), _other) = json.loads(traced.stdout)
    assert name == "GET /jobs/{job_id}"
    assert trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert attributes["http.request.header.x-request-id"] == ["mine"]
    assert attributes["http.response.status_code"] == 404
    line = next(json.loads(line) for line in traced.stderr.splitlines() if '"request"' in line)
    assert (line["trace_id"], line["request_id"]) == (trace_id, "mine")


def test_a_token_that_somebody_put_into_a_query_is_in_no_span_and_no_line(
    traced: subprocess.CompletedProcess[str],
) -> None:
    (_first, (name, _trace_id, attributes)) = json.loads(traced.stdout)
    assert (name, attributes["url.query"]) == ("GET /jobs", "token=rz_%2A%2A%2A")
    assert "A" * 43 not in traced.stdout + traced.stderr
