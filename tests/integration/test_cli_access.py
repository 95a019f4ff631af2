"""The command towards a service that asks for tokens: logging in, users, tokens, secrets, webhooks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import sealing
from tests.integration.command import Done, document, on_a_terminal, rankzero
from tests.integration.conftest import copy_of_sqlite
from tests.integration.guarded_api import GuardedApi


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[GuardedApi]:
    folder = tmp_path_factory.mktemp("guarded-api")
    sealing.make_key(folder / "key")
    with GuardedApi(copy_of_sqlite(migrated_sqlite_template, folder), folder, key_file=folder / "key") as server:
        yield server


def by(api: GuardedApi, user: str, *arguments: str, stdin: str | None = None) -> Done:
    """What a user gets."""
    return rankzero(api.url, *arguments, stdin=stdin, RANKZERO_TOKEN=api.tokens[user])


def test_a_token_is_tried_stored_used_and_forgotten(api: GuardedApi, tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}

    outside = rankzero(api.url, "ls", **home)
    wrong = rankzero(api.url, "login", stdin=f"rz_{'x' * 43}\n", **home)
    logged_in = rankzero(api.url, "login", stdin=f"{api.tokens['alice']}\n", **home)

    assert (outside.returncode, outside.stderr.count("\n"), "rankzero login" in outside.stderr) == (2, 1, True)
    assert (wrong.returncode, "unknown, expired or revoked" in wrong.stderr) == (2, True)
    file = tmp_path / "rankzero" / "credentials.toml"
    assert logged_in.stdout == f"logged in to {api.url} as alice (submitter); the token is in {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    who = rankzero(api.url, "whoami", **home).stdout
    assert who.startswith(f"alice, submitter, at {api.url}: token ")
    assert who.endswith(f" of {file}\n")
    assert rankzero(api.url, "ls", **home).returncode == 0
    assert rankzero(api.url, "logout", **home).stdout == f"logged out of {api.url}\n"
    assert rankzero(api.url, "logout", **home).stdout == f"no token is stored for {api.url}\n"
    assert rankzero(api.url, "whoami", **home).returncode == 2
    for done in (wrong, logged_in, outside):
        assert not any(token in done.stdout + done.stderr for token in (api.tokens["alice"], "x" * 43))


def test_a_token_is_not_asked_for_where_it_would_travel_unencrypted() -> None:
    done = rankzero("http://gpu-box:8000", "login", stdin="rz_a\n")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith("add --insecure\n")


def test_a_job_is_for_whom_the_token_names(api: GuardedApi) -> None:
    flags = ("submit", "--model", "resnet18", "--data", "digits", "-d", "--json")
    job = document(by(api, "alice", *flags))
    planned = by(api, "alice", "plan", "--model", "resnet18", "--data", "digits")
    others = by(api, "bob", "cancel", str(job["id"]))

    assert job["user"] == "alice"
    assert planned.returncode == 0, planned.stderr
    assert (others.returncode, others.stderr.count("\n")) == (2, 1)
    assert "alice" in others.stderr
    assert others.stderr.endswith("rankzero whoami says who you are there\n")


def test_what_takes_another_role_names_it(api: GuardedApi) -> None:
    refused = by(api, "vera", "users")
    assert refused.returncode == 2
    assert refused.stderr.startswith("rankzero: this takes the role admin; the token of vera has viewer; ")


def test_the_doctor_says_to_log_in_and_then_as_whom(api: GuardedApi, tmp_path: Path) -> None:
    here = {"XDG_DATA_HOME": str(tmp_path)}
    outside = rankzero(api.url, "doctor", "--json", **here)
    inside = rankzero(api.url, "doctor", "--json", **here, RANKZERO_TOKEN=api.tokens["vera"])

    logins = [json.loads(done.stdout)["checks"][4] for done in (outside, inside)]
    assert [(each["check"], each["verdict"]) for each in logins] == [("login", "bad"), ("login", "ok")]
    assert "rankzero login" in logins[0]["seen"]
    assert logins[1]["seen"] == "vera, viewer"
    assert outside.returncode == 1


def test_users_are_added_changed_and_given_tokens(api: GuardedApi) -> None:
    assert by(api, "root", "users", "add", "carl").stdout.startswith("carl is a submitter; ")
    made = by(api, "root", "token", "create", "for carl", "--user", "carl", "--role", "viewer", "--expires-in", "90d")
    token = made.stdout.removesuffix("\n")
    assert rankzero(api.url, "ls", RANKZERO_TOKEN=token).returncode == 0
    assert made.stderr.endswith("of carl (viewer); it is shown this once\n")

    mine = document(rankzero(api.url, "token", "--json", RANKZERO_TOKEN=token))
    assert [(each["user"], each["name"], each["role"]) for each in mine] == [("carl", "for carl", "viewer")]
    assert "for carl" in by(api, "root", "token", "--user", "carl").stdout
    changed = by(api, "root", "users", "set", "carl", "--role", "admin", "--disable").stdout
    assert changed == "carl is disabled, with the role admin\n"
    assert rankzero(api.url, "ls", RANKZERO_TOKEN=token).returncode == 2
    assert by(api, "root", "users", "set", "carl", "--enable").stdout == "carl is enabled, with the role admin\n"
    revoked = by(api, "root", "token", "revoke", str(mine[0]["id"]))
    assert revoked.stdout == f"token {mine[0]['id']} counts no more\n"
    assert "revoked" in by(api, "root", "token", "--user", "carl").stdout
    assert {each["name"] for each in document(by(api, "root", "users", "--json"))} >= {"carl", "root", "vera"}


def test_a_secret_is_read_from_standard_input_and_never_shown(api: GuardedApi) -> None:
    stored = by(api, "root", "secrets", "set", "wandb", stdin="line one\nline two\n")
    listed = by(api, "alice", "secrets")

    assert stored.stdout == "wandb is stored; runs that start from now on are given it\n"
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["SECRET", "wandb"]
    assert "line one" not in stored.stdout + listed.stdout
    assert document(by(api, "root", "secrets", "delete", "wandb", "--json")) == {"removed": "wandb"}
    assert by(api, "alice", "secrets").stdout == "no secrets; rankzero secrets set NAME stores one\n"


def test_a_secret_is_typed_unseen(api: GuardedApi) -> None:
    with on_a_terminal(api.url, "secrets", "set", "typed", RANKZERO_TOKEN=api.tokens["root"]) as terminal:
        terminal.wait_for("value of typed: ")
        terminal.type("not-to-be-seen\n")
        code = terminal.exit_code()

    assert (code, "not-to-be-seen" in terminal.text) == (0, False), terminal.text
    assert by(api, "root", "secrets", "delete", "typed").stdout == "typed is forgotten\n"


def test_a_webhook_is_changed_given_another_key_and_told_once_more(api: GuardedApi) -> None:
    made = document(by(api, "root", "webhooks", "add", "https://example.org/a", "--label", "team=a", "--json"))
    webhook_id = str(made["id"])

    changed = by(
        api, "root", "webhooks", "change", webhook_id, "--to", "https://example.org/b", "--topic", "job.failed"
    )
    described = by(api, "root", "webhooks", "change", webhook_id, "--description", "chat", "--no-labels", "--json")
    rest = ("--topic", "all", "--description", "", "--disable")
    disabled = by(api, "root", "webhooks", "change", webhook_id, *rest)

    assert changed.stdout == f"webhook {webhook_id} is told, at https://example.org/b\n"
    expected = {"topics": ["job.failed"], "labels": {}, "description": "chat", "enabled": True}
    assert document(described).items() >= expected.items()
    assert disabled.stdout == f"webhook {webhook_id} is told nothing: it is disabled, at https://example.org/b\n"
    (webhook,) = [each for each in document(by(api, "root", "webhooks", "--json")) if str(each["id"]) == webhook_id]
    assert webhook.items() >= {"topics": [], "labels": {}, "description": None, "enabled": False}.items()

    by(api, "root", "webhooks", "change", webhook_id, "--enable")
    rotated = by(api, "root", "webhooks", "rotate", webhook_id)
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout.strip() != made["key"]
    message = document(by(api, "root", "webhooks", "test", webhook_id, "--json"))
    again = by(api, "root", "webhooks", "redeliver", webhook_id, str(message["id"]))
    assert again.stdout.startswith(f"message {message['message_id']} is to be sent again; ")
    assert by(api, "root", "webhooks", "delete", webhook_id).returncode == 0


def test_the_audit_is_listed_by_who_did_what_to_what_and_when(api: GuardedApi) -> None:
    job_id = api.submit_by("alice")
    assert by(api, "vera", "cancel", str(job_id)).returncode == 2

    of_job = document(by(api, "root", "audit", "--subject", f"jobs/{job_id}", "--from", "1h", "--json"))
    refused = by(api, "root", "audit", "--actor", "vera", "--limit", "1").stdout.splitlines()[1]

    assert [(each["actor"], each["action"]) for each in of_job][-1] == ("alice", "submit_job")
    assert "cancel_job" in refused
    assert "this takes the role submitter" in refused
    nothing = by(api, "root", "audit", "--subject", f"jobs/{job_id}", "--to", "2026-01-01")
    assert nothing.stdout == "nothing of that was done\n"


def test_a_webhook_is_added_tested_and_deleted(api: GuardedApi) -> None:
    made = by(api, "root", "webhooks", "add", "https://example.org/told", "--topic", "job.failed", "--label", "team=a")
    assert made.stdout.startswith("whsec_")
    (webhook,) = document(by(api, "root", "webhooks", "--json"))
    webhook_id = str(webhook["id"])

    listed = by(api, "root", "webhooks").stdout.splitlines()
    assert listed[1].split() == [webhook_id, "https://example.org/told", "job.failed", "team=a", "told"]
    assert by(api, "root", "webhooks", "deliveries", webhook_id).stdout == "it was told nothing yet\n"
    tested = by(api, "root", "webhooks", "test", webhook_id).stdout
    deliveries = by(api, "root", "webhooks", "deliveries", webhook_id).stdout.splitlines()
    assert "is to be sent" in tested
    assert "webhook.test" in deliveries[1]
    assert "pending" in deliveries[1]
    assert by(api, "root", "webhooks", "delete", webhook_id).stdout == f"webhook {webhook_id} is deleted\n"
    assert by(api, "alice", "webhooks").returncode == 2
