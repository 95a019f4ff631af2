"""The service's own log where it cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
PROGRAM = """
import structlog
from jobs.logs import configure_logs

configure_logs()
log = structlog.get_logger()
for tell in (log.debug, log.info, log.warning, log.error, log.critical):
    tell("told", number=1)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
print("went on")
"""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_process_whose_log_lies_on_a_disk_that_is_full_goes_on() -> None:
    with FULL.open("wb") as full:
        ended = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=full, check=False)
    assert ended.stdout == b"went on\n"


def test_a_line_of_any_level_is_one_json_object_on_standard_error() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    lines = ended.stderr.decode().splitlines()
    assert [line.count('"event"') for line in lines] == [1] * 5  # not that of debug
    assert '"level": "critical"' in lines[3]
