"""Quotas: setting and removing them, and who uses how much."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path

from api.access import Admin, Viewer
from api.fleet import Quota, Quotas, QuotaSetting
from api.quota_views import view_quota, view_quotas
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


@router.put("/{kind}/{subject:path}", summary="Set a quota")
def put_quota(kind: Kind, subject: Subject, setting: QuotaSetting, by: Admin) -> Quota:
    """Set the quota of a user or a label in place of the one it had, and return it.

    Jobs that run already go on, also where they hold more; the next ones wait.
    """
    with writing() as session:
        audit.record(session, by, "put_quota", f"quotas/{kind}/{subject}", **setting.model_dump())
        quotas.put(session, _account(kind, subject), max_devices=setting.max_devices, share=setting.share)
        quota = view_quota(session, kind, subject)
    wakeups.wake_planner()  # a higher limit lets jobs start
    return quota


@router.delete("/{kind}/{subject:path}", status_code=204, summary="Remove a quota")
def delete_quota(kind: Kind, subject: Subject, by: Admin) -> None:
    """Remove the quota of a user or a label."""
    with writing() as session:
        audit.record(session, by, "delete_quota", f"quotas/{kind}/{subject}")
        quotas.remove(session, _account(kind, subject))
    wakeups.wake_planner()


def _account(kind: str, subject: str) -> Account:
    if kind == "label" and not subject.partition("=")[0]:
        raise InvalidFilterError("subject", "a label is key=value")
    if kind == "label" and "=" not in subject:
        raise InvalidFilterError("subject", f"{subject!r} is no label: it is key=value")
    return kind, subject
