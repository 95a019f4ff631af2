"""Who may use the service: users, tokens, secrets, and the audit of what they did."""

from collections.abc import Iterator
from datetime import datetime

from rankzero.access import AuditEvent, Me, Secret, ShownToken, Token, User
from rankzero.connection import parsed
from rankzero.resources.resource import Resource, part


class Access(Resource):
    """The client's methods about access; most take the role admin."""

    def me(self) -> Me:
        """Return on whose behalf this client asks, and what it may do."""
        return parsed(Me, self._connection.get("/me"))

    def users(self) -> Iterator[User]:
        """Yield every user, by name."""
        yield from self._connection.pages("/users", User, {})

    def user(self, name: str) -> User:
        """Return one user."""
        return parsed(User, self._connection.get(f"/users/{part(name)}"))

    def create_user(self, name: str, *, role: str) -> User:
        """Add a user, who can do nothing before `create_token` makes them a token.

        Roles are `viewer`, `submitter` and `admin`.
        """
        return parsed(User, self._connection.make("/users", {"name": name, "role": role}))

    def change_user(self, name: str, *, role: str | None = None, disabled: bool | None = None) -> User:
        """Give a user another role, or have none of their tokens count while they are `disabled`."""
        given = {"role": role, "disabled": disabled}
        changes = {field: value for field, value in given.items() if value is not None}
        return parsed(User, self._connection.send("PATCH", f"/users/{part(name)}", changes, of="change"))

    def tokens(self, *, user: str | None = None) -> Iterator[Token]:
        """Yield one's own tokens, or with the role admin all, or those of a `user`; the newest first."""
        yield from self._connection.pages("/tokens", Token, {"user": user})

    def create_token(
        self, name: str, *, user: str | None = None, role: str | None = None, expires_at: datetime | None = None
    ) -> ShownToken:
        """Make a token, for oneself or with the role admin for a `user`, and return it with its text, shown this once.

        `name` says what it is for. It allows no more than the token that asks for it. Where the answer that has its
        text is lost, the refusal of the second try names the token: revoke it and make another.
        """
        given = {"name": name, "user": user, "role": role, "expires_at": expires_at and expires_at.isoformat()}
        body = {field: value for field, value in given.items() if value is not None}
        return parsed(ShownToken, self._connection.make("/tokens", body))

    def revoke_token(self, token_id: int) -> None:
        """Have a token count no more, from the next request on."""
        self._connection.delete(f"/tokens/{token_id}")

    def secrets(self) -> Iterator[Secret]:
        """Yield the secrets that jobs may name, by name; nobody reads what they hold."""
        yield from self._connection.pages("/secrets", Secret, {})

    def set_secret(self, name: str, value: str) -> Secret:
        """Store a secret in place of the one there was; runs that start from now on are given it."""
        return parsed(Secret, self._connection.send("PUT", f"/secrets/{part(name)}", {"value": value}))

    def delete_secret(self, name: str) -> None:
        """Forget a secret. A job that names it fails when it starts."""
        self._connection.delete(f"/secrets/{part(name)}")

    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        begin: datetime | None = None,
        end: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[AuditEvent]:
        """Yield what was done and what a role did not allow, or the last `limit` of it, the newest first.

        By this user, of this kind (`submit_job`), to this or a part of it (`jobs/7`, `hosts`), within aware times.
        """
        query = {"actor": actor, "action": action, "subject": subject, "from": begin, "to": end}
        yield from self._connection.pages("/audit", AuditEvent, query, limit=limit)
