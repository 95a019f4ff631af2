"""Tokens made on the database itself, for the first admin and for one who lost theirs:

    python -m jobs.tokens create --user NAME --role admin [--name WHAT_FOR] [--days N]

prints the token, once. It asks nobody: who can write the database can do anything. The rest is the API's (`/tokens`).
"""

import argparse
import sys
from datetime import timedelta

from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jobs.access import LOCAL, Role, UserName
from jobs.database import get_database, now
from jobs.errors import InvalidSettingsError, JobError
from jobs.store import audit, grants, schema, users
from jobs.tables import User


def create(session: Session, name: str, role: Role, *, token_name: str, days: float | None) -> str:
    """Make a token for a user, who is added, or raised to `role`, where need be; return its text."""
    user = session.get(User, name)
    if user is None:
        users.add(session, name, role)
    elif not Role(user.role).includes(role):
        users.change(session, name, role=role)
    expires_at = None if days is None else now(session) + timedelta(days=days)
    token, text = grants.make(session, LOCAL, name=token_name, user=name, role=role, expires_at=expires_at)
    audit.record(session, LOCAL, "create_token", f"tokens/{token.id}", user=name, role=role, offline=True)
    return text


def main() -> None:
    """Print a new token on standard output; anything else goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m jobs.tokens", description="Make a token on the database itself.")
    command = parser.add_subparsers(dest="command", required=True).add_parser("create", help="print a new token, once")
    command.add_argument("--user", required=True, help="whose it is; a user who is not there is added")
    command.add_argument("--role", required=True, choices=list(Role), type=Role, help="the most that it allows")
    command.add_argument("--name", default="made on the database", help="what it is for, in words")
    command.add_argument("--days", type=float, help="for how long it counts; without it, until it is revoked")
    options = parser.parse_args()
    try:
        TypeAdapter(UserName).validate_python(options.user)
    except ValidationError:
        sys.exit(f"rankzero: --user {options.user}: letters, digits and _ . @ + - alone, at most 128, no sign first")
    if options.days is not None and not 0 < options.days < 36_500:
        sys.exit(f"rankzero: --days {options.days:g}: more than 0, and less than a hundred years")
    try:
        with get_database().session_scope() as session:
            schema.require_current(session)
            text = create(session, options.user, options.role, token_name=options.name, days=options.days)
    except (InvalidSettingsError, JobError) as error:
        sys.exit(f"rankzero: {error}")
    except SQLAlchemyError as error:
        sys.exit(f"rankzero: the database does not answer: {str(error).splitlines()[0]}")
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
