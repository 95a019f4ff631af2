"""The service's log tells no tokens and passwords, whoever hands them to it."""

import json
import subprocess
import sys

import pytest

from jobs.redaction import redact

TOKEN = "rz_" + "aB3-_" * 8 + "xyz"
PROGRAM = f"""
import logging, structlog
from jobs.logs import configure_logs

configure_logs()
log = structlog.get_logger()
log.info("lines", text="of others\\n{TOKEN}\\nwhsec_pa55word\\nBearer pa55word0123\\nredis://me:pa55word@h/0")
log.info("told", headers={{"Authorization": "Bearer {TOKEN}"}}, url="postgresql+psycopg://me:pa55word@db/x")
logging.getLogger("celery").warning("no broker at %s", "redis://:pa55word@10.0.0.1:6379/0")
try:
    raise RuntimeError("sent whsec_pa55word0123 with {TOKEN}")
except RuntimeError:
    log.exception("failed")
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {TOKEN}!", "token rz_***!"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        ("redis://:pw@host:6379/0", "redis://***@host:6379/0"),
        ("postgresql+psycopg://u:p%40w@h/d", "postgresql+psycopg://***@h/d"),
        ("s3://key:secret@bucket/x", "s3://***@bucket/x"),
        ("whsec_MfKQ9r8GKYqrTwjU", "whsec_***"),
    ],
)
def test_tokens_and_passwords_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/jobs?label=a@b",
        "s3://bucket/a:b@c",
        "bearer of news",
        "rz_short",
        "job 7 of alice@example.com: no device",
    ],
)
def test_what_only_looks_a_little_like_one_stays(text: str) -> None:
    assert redact(text) == text


def test_no_line_of_the_log_has_any_whoever_wrote_it() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["lines", "told", "no broker at redis://***@10.0.0.1:6379/0", "failed"]
    assert TOKEN not in ended.stderr
    assert "pa55word" not in ended.stderr
