"""The receiver that docs/webhooks.md shows is one."""

import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx2
from standardwebhooks import Webhook as Signature

from jobs.webhooks import new_signing_key
from tests.children import start_child
from tests.ports import PortClaim
from tests.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"


def test_the_receiver_of_the_page_takes_what_is_signed_with_its_key_and_nothing_else(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    key, other_key = new_signing_key(), new_signing_key()
    claim = PortClaim()
    program = program.replace('"whsec_…"', repr(key)).replace("9000", str(claim.port))
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    log = tmp_path / "receiver.log"
    page = start_child([sys.executable, "-c", program], log=log, folder=tmp_path, environment=environment)
    url = f"http://127.0.0.1:{claim.port}/"
    body = json.dumps({"type": "job.failed", "data": {"job": {"id": 7}}})

    def answers(status: int, signed_with: str) -> bool:
        at = datetime.now(UTC)
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": Signature(signed_with).sign("msg_1", at, body),
        }
        try:
            return httpx2.post(url, content=body, headers=headers, timeout=10).status_code == status
        except httpx2.TransportError:
            return False

    try:
        wait_until(lambda: answers(204, key), timeout_s=30, what=lambda: f"the receiver to answer: {log.read_text()}")
        assert answers(400, other_key)
        assert "job.failed 7" in log.read_text().splitlines()
    finally:
        page.kill()
        page.wait()
        claim.release()
