"""A service as one finds it in the middle of the day: jobs in every state, and among them whatever data may hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.states import State
from tests.browser.dashboard import DEVICES, Dashboard
from tests.browser.talks import Talks

ODD_NAME = "<b>odd</b> & “ünï” 🚀 " + "l" + "o" * 228 + "ng"
"""With a word of 231 letters, which no line takes."""
ODD_LINES = (
    "\x1b[1;32mgreen\x1b[0m \x1b[38;5;208morange\x1b[0m \x1b[31;47mred on white\x1b[0m \x1b[7mturned",
    "\x1b[2mfaint\x1b[0m \x1b[3mslanted\x1b[0m \x1b[4munderlined\x1b[0m",
    "<script>alert(1)</script> & <img src=x>",
    " 10%|█         |\r 50%|█████     |\r100%|██████████|",
    "x" * 5_000,
)


@dataclass(frozen=True)
class Scene:
    """The jobs by what is odd about them."""

    trained: tuple[int, int]
    failed: int
    running: int
    queued: int
    paused: int
    cancelled: int


@contextmanager
def set_up(dashboard: Dashboard, trained: tuple[int, int], folder: Path) -> Iterator[Scene]:
    """Have such jobs, until all is over."""
    talks = Talks(dashboard, folder)
    service = dashboard.service
    try:
        failed = talks.begin("bob", name="wrong-labels", labels={"team": "vision", "sweep": "3"})
        failed.say(*ODD_LINES)
        failed.measure(1, **{"train/loss": 2.3})
        failed.measure(2, **{"train/loss": float("nan")})
        failed.fail("label 12 of <sample 7> is not among the 10 classes")
        service.wait_for(failed.id, State.FAILED)

        running = talks.begin("alice", name=ODD_NAME, labels={"<i>key</i>": "a “value”"}, device="cuda:0,cuda:1")
        for step in range(1, 41):
            value = float("nan") if step == 20 else 3 / step + (step % 5) / 20
            running.measure(step, **{"train/loss": value, "val/accuracy": step / 50, "odd <name> 🚀": -step})
        running.say(*ODD_LINES)
        service.wait_for_step(running.id, 40)

        cancelled = talks.begin("alice", waits=True, name="second-thoughts", host="nowhere")
        paused = talks.begin("bob", waits=True, name="after-the-release", host="nowhere")
        queued = talks.begin("alice", waits=True, name="all-devices", device={"count": DEVICES}, priority=80)
        with dashboard.client("root") as client:
            client.cancel(cancelled.id)
            client.pause(paused.id)
        yield Scene(trained, failed.id, running.id, queued.id, paused.id, cancelled.id)
    finally:
        talks.end()
