"""Secrets: storing and removing them, and which there are. Nobody reads one back."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.access import Admin, Submitter
from api.errors import CONFLICT
from api.pages import Page, PageQuery, read_page
from api.secrets import NewSecret, Secret
from api.session import reading, writing
from jobs.secret_names import SecretName
from jobs.store import audit, secrets

router = APIRouter(prefix="/secrets", tags=["access"])

Name = Annotated[SecretName, Path(description="Name of the secret.")]


@router.get("", summary="List secrets")
def list_secrets(query: Annotated[PageQuery, Query()], _: Submitter) -> Page[Secret]:
    """Return one page of the secrets that jobs may name, by name, without what they hold."""
    with reading() as session:
        return read_page(session, secrets.select_secrets(), query, Secret)


@router.put("/{name}", summary="Store a secret", responses=CONFLICT)
def put_secret(name: Name, secret: NewSecret, by: Admin) -> Secret:
    """Store a secret in place of the one there was, and return it without what it holds; runs that start from now on
    are given it."""
    with writing() as session:
        stored = secrets.put(session, name, secret.value.get_secret_value(), by=by)
        audit.record(session, by, "put_secret", f"secrets/{name}")
    return Secret.model_validate(stored, from_attributes=True)


@router.delete("/{name}", status_code=204, summary="Remove a secret")
def delete_secret(name: Name, by: Admin) -> None:
    """Forget a secret. A job that names it fails when it starts."""
    with writing() as session:
        secrets.remove(session, name)
        audit.record(session, by, "delete_secret", f"secrets/{name}")
