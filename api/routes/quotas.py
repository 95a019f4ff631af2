"""Quotas: setting and removing them, and who uses how much."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path

from api.access import Admin, Viewer
from api.errors import EDITED_SINCE, NOT_MODIFIED
from api.etags import IfMatch, Tags
from api.fleet import Quota, Quotas, QuotaSetting
from api.quota_views import edited, view_quota, view_quotas
from api.session import reading, writing
from jobs import wakeups
from jobs.errors import InvalidFilterError
from jobs.planner.view import Account
from jobs.store import audit, quotas

router = APIRouter(prefix="/quotas", tags=["quotas"])

Kind = Annotated[Literal["user", "label"], Path(description="Whose quota it is.")]
Subject = Annotated[
    str,
    Path(
        min_length=1,
        max_length=319,
        pattern=r"^[^\x00]*$",
        description="The user's name, `*` for each user that has no quota of its own, or `key=value`.",
    ),
]


@router.get("", summary="List quotas and use")
def list_quotas(_: Viewer) -> Quotas:
    """Return every quota with what its jobs hold and have used lately, and the same of each user."""
    with reading() as session:
        return view_quotas(session)


@router.get("/{kind}/{subject:path}", summary="Show a quota", responses=NOT_MODIFIED)
def get_quota(kind: Kind, subject: Subject, _: Viewer, tags: Tags) -> Quota:
    """Return the quota of a user or a label with what its jobs hold and have used lately."""
    account = _account(kind, subject)
    with reading() as session:
        quota = view_quota(session, *account)
    return tags.shown(quota, **edited(quota))


@router.put("/{kind}/{subject:path}", summary="Set a quota", responses=EDITED_SINCE)
def put_quota(kind: Kind, subject: Subject, setting: QuotaSetting, by: Admin, expected: IfMatch) -> Quota:
    """Set the quota of a user or a label in place of the one it had, and return it.

    Jobs that run already go on, also where they hold more; the next ones wait.
    """
    account = _account(kind, subject)
    with writing() as session:
        expected.check(f"the quota of {kind} {subject!r}", **edited(quotas.hold(session, account)))
        audit.record(session, by, "put_quota", f"quotas/{kind}/{subject}", **setting.model_dump())
        quotas.put(session, account, max_devices=setting.max_devices, share=setting.share)
        quota = view_quota(session, kind, subject)
    wakeups.wake_planner()  # a higher limit lets jobs start
    return expected.changed(quota, **edited(quota))


@router.delete("/{kind}/{subject:path}", status_code=204, summary="Remove a quota", responses=EDITED_SINCE)
def delete_quota(kind: Kind, subject: Subject, by: Admin, expected: IfMatch) -> None:
    """Remove the quota of a user or a label."""
    account = _account(kind, subject)
    with writing() as session:
        expected.check(f"the quota of {kind} {subject!r}", **edited(quotas.hold(session, account)))
        audit.record(session, by, "delete_quota", f"quotas/{kind}/{subject}")
        quotas.remove(session, account)
    wakeups.wake_planner()


def _account(kind: str, subject: str) -> Account:
    if kind == "label" and not subject.partition("=")[0]:
        raise InvalidFilterError("subject", "a label is key=value")
    if kind == "label" and "=" not in subject:
        raise InvalidFilterError("subject", f"{subject!r} is no label: it is key=value")
    return kind, subject
