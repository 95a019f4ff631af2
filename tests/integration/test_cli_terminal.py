"""The command on a terminal: a job that is followed and interrupted, a table that changes, words that are completed."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.api_server import ApiServer
from tests.integration.command import PROGRAM, on_a_terminal, rankzero_process
from tests.integration.conftest import api_on_sqlite

WAITING = ("submit", "--model", "resnet18", "--data", "digits", "--device", "cuda:9")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


def test_ctrl_c_asks_and_the_job_is_cancelled_if_that_is_wanted(api: ApiServer) -> None:
    with on_a_terminal(api.url, *WAITING, "--name", "to cancel") as terminal:
        terminal.wait_for("job [0-9]+ queued")
        terminal.interrupt()
        terminal.wait_for(r"\[d\] detach, or \[c\] cancel it\?")
        terminal.type("what\nc\n")
        code = terminal.exit_code()

    assert code == 3, terminal.text
    assert states(api, "to cancel") == ["cancelled"]


def test_a_second_ctrl_c_detaches_at_once(api: ApiServer) -> None:
    with on_a_terminal(api.url, *WAITING, "--name", "to leave") as terminal:
        terminal.wait_for("job [0-9]+ queued")
        terminal.interrupt()
        terminal.wait_for(r"cancel it\?")
        terminal.interrupt()
        code = terminal.exit_code()

    assert code == 130
    assert "goes on; see it: rankzero show" in terminal.text
    assert states(api, "to leave") == ["queued"]


def test_without_a_terminal_ctrl_c_detaches_and_says_how_to_come_back(api: ApiServer) -> None:
    command = [PROGRAM, *WAITING, "--name", "unseen", "--url", api.url]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            # So begins the line that it prints once it follows.
            assert any(re.match("job [0-9]+ queued", line) for line in process.stdout)
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            code = process.wait(timeout=30)
        finally:
            process.kill()

    assert code == 130
    assert "goes on; see it: rankzero show" in rest
    assert states(api, "unseen") == ["queued"]


def test_ctrl_c_before_the_answer_to_a_submission_says_that_the_job_may_be_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [PROGRAM, *WAITING, "--url", url]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                silent.settimeout(30)
                connection, _ = silent.accept()
                with connection:
                    assert connection.recv(4) == b"POST"
                    process.send_signal(signal.SIGINT)
                    _, said = process.communicate(timeout=30)
            finally:
                process.kill()

    assert process.returncode == 130
    assert said == "rankzero: the job may have been submitted, no answer came yet; look: rankzero ls\n"


def test_ctrl_c_before_the_command_is_loaded_ends_it_without_a_word() -> None:
    program = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "rankzero.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from rankzero.cli import main
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_who_reads_no_further_ends_a_command_without_a_word(api: ApiServer, form: tuple[str, ...]) -> None:
    unread, output = os.pipe()
    os.close(unread)
    with open(output, "wb") as gone:
        done = printing(api, form, gone)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_output_that_cannot_be_written_is_told_in_a_line(api: ApiServer, form: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = printing(api, form, full)
    assert done.returncode == 1
    assert done.stderr == b"rankzero: standard output cannot be written: No space left on device\n"


def test_a_command_whose_output_is_closed_is_done_all_the_same(api: ApiServer) -> None:
    command = (
        f"{PROGRAM} submit --model resnet18 --data digits --device cuda:9 --name unheard -d --json --url {api.url} >&-"
    )
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert states(api, "unheard") == ["queued"]


def test_a_table_of_jobs_shows_them_as_they_are_in_80_columns(api: ApiServer) -> None:
    name = "a name that is far longer than there is room for in a table"
    job_id = api.submit(device="cuda:9", name=name, labels={"of": "watch"})
    with on_a_terminal(api.url, "ls", "--watch", "--label", "of=watch") as terminal:
        terminal.wait_for(rf"{job_id} +queued +a name")
        terminal.wait_for("1 job")
        api.post(f"/jobs/{job_id}/cancel", None)
        terminal.wait_for(rf"{job_id} +cancelled +a name")
        terminal.interrupt()
        code = terminal.exit_code()

    assert code == 0
    assert max(map(len, terminal.text.splitlines())) <= 80
    assert all(line.count("queued") <= 1 for line in terminal.text.splitlines())


def test_on_a_dumb_terminal_a_followed_job_is_told_in_lines_and_a_table_that_changes_is_refused(api: ApiServer) -> None:
    with on_a_terminal(api.url, *WAITING, "--label", "of=dumb", TERM="dumb") as terminal:
        terminal.wait_for("job [0-9]+ queued")
        (job,) = api.http.get("/jobs", params={"label": "of=dumb"}).json()["items"]
        api.post(f"/jobs/{job['id']}/cancel", None)
        assert terminal.exit_code() == 3
    with on_a_terminal(api.url, "ls", "--watch", TERM="dumb") as terminal:
        assert terminal.exit_code() == 2


def test_the_shell_completes_ids_of_jobs_and_nothing_where_no_service_answers(api: ApiServer) -> None:
    job_id = api.submit(device="cuda:9", name="to complete")

    def completed(url: str) -> list[str]:
        words = {"_TYPER_COMPLETE_ARGS": "rankzero show ", "_RANKZERO_COMPLETE": "complete_zsh"}
        return rankzero_process(url, **words).stdout.splitlines()

    assert any(str(job_id) in line and "queued to complete" in line for line in completed(api.url))
    assert not any("queued" in line for line in completed("http://127.0.0.1:1"))


def printing(api: ApiServer, form: tuple[str, ...], output: BinaryIO) -> "subprocess.CompletedProcess[bytes]":
    """Run a command whose output is less than what is written at once."""
    command = [PROGRAM, "show", str(api.submit(device="cuda:9")), *form, "--url", api.url]
    return subprocess.run(command, stdout=output, stderr=subprocess.PIPE, timeout=60, check=False)


def states(api: ApiServer, name: str) -> list[str]:
    return [job["state"] for job in api.http.get("/jobs", params={"name": name}).json()["items"]]
