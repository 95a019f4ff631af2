"""Quotas as the API shows them, while others change them."""

from datetime import datetime

import pytest
from sqlalchemy.orm import Session

from api import quota_views
from jobs.database import Database
from jobs.planner.view import Account
from jobs.store import quotas, usage

ADA: Account = ("user", "ada")


def test_a_quota_that_is_removed_while_it_is_read_is_shown_as_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.session_scope() as session:
        quotas.put(session, ADA, max_devices=2, share=1)

    read = usage.read

    def removed_meanwhile(session: Session, at: datetime) -> dict[Account, float]:
        with database.session_scope() as another:
            quotas.remove(another, ADA)
        return read(session, at)

    monkeypatch.setattr(usage, "read", removed_meanwhile)
    with database.session_scope(read_only=True) as session:
        shown = quota_views.view_quota(session, *ADA)

    assert (shown.subject, shown.max_devices) == ("ada", 2)
