"""The commands and programs that our pages show, and a shell that does what a page says, in its order."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "examples/*/README.md")
    for path in ROOT.glob(pattern)
)
SHELLS = ("console", "sh")
OTHER_LANGUAGES = ("python", "yaml", "json", "toml", "js", "mermaid", "ini", "nginx", "caddy", "text")
_PROGRAMS = "curl|docker|make|nginx|pip|python|python3|rankzero|sudo|systemctl|torchrun"
_COMMAND = re.compile(rf"(?:\w+\$ +)?(?:[A-Z_]+=\S+ +)*(?:\. |(?:{_PROGRAMS}) )")
_FENCE = re.compile(r"^(\s*)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)( {4}.*\n(?: {4}.*\n|\n(?= {4}))*)")


@dataclass(frozen=True)
class Step:
    """A command or program on a page, and what the page shows that it prints; `""` where it shows nothing."""

    page: str
    line: int
    text: str
    language: str = "sh"
    output: str = ""

    @property
    def name(self) -> str:
        """What it is known by: its first line with no comment."""
        return re.split(r"\s+#", self.text.partition("\n")[0])[0].strip()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.name}"


@dataclass(frozen=True)
class Block:
    """A block of a page: a fenced one, or one that is indented, which has no language unless it holds commands."""

    line: int
    language: str
    text: str


def blocks(page: str) -> Sequence[Block]:
    """Return the blocks of a page, in order."""
    text = (ROOT / page).read_text()
    found: list[Block] = []

    def line_at(position: int) -> int:
        return text.count("\n", 0, position) + 1

    def blank(match: re.Match[str]) -> str:
        indent, language, body = match.groups()
        found.append(Block(line_at(match.start()) + 1, language, re.sub(f"^{indent}", "", body, flags=re.MULTILINE)))
        return "\n" * match[0].count("\n")

    prose = _FENCE.sub(blank, text)
    for match in _INDENTED.finditer(prose):
        body = re.sub(r"^ {4}", "", match[1], flags=re.MULTILINE)
        language = "sh" if is_command(body) else "python" if re.match(r"(?:from|import) \w", body) else ""
        found.append(Block(prose.count("\n", 0, match.start()) + 1, language, body))
    return sorted(found, key=lambda block: block.line)


def is_command(text: str) -> bool:
    """Whether a text begins with a program of ours, or one that our pages use."""
    return _COMMAND.match(text) is not None


def steps(page: str) -> Sequence[Step]:
    """Return every command and Python program of a page, in order."""
    return list(_steps(page))


def _steps(page: str) -> Iterator[Step]:
    for block in blocks(page):
        if block.language == "python":
            yield Step(page, block.line, block.text, language="python")
        if block.language in SHELLS:
            yield from _commands(page, block)


def _commands(page: str, block: Block) -> Iterator[Step]:
    """Split a block into commands; in a console each begins with a prompt, and what has none was printed."""
    step: Step | None = None
    for number, line in enumerate(block.text.splitlines(), block.line):
        if step is not None and not _is_whole(step.text):
            step = replace(step, text=f"{step.text}\n{line}")
            continue
        prompt = re.match(r"\w*\$ +", line)
        if block.language == "console" and prompt is None:
            assert step is not None, f"{page}:{number}: a console begins with a command"
            step = replace(step, output=f"{step.output}{line}\n")
            continue
        if step is not None:
            yield step
        text = line[prompt.end() :] if prompt else line
        step = Step(page, number, text) if text.strip() and not text.startswith("#") else None
    if step is not None:
        assert _is_whole(step.text), f"{step}: it does not end"
        yield step


def _is_whole(text: str) -> bool:
    """Whether a command ends where this text does."""
    if text.endswith("\\"):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


class Shell:
    """One shell that runs the steps of a page one after the other: what one leaves in it is there for the next."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._told = folder / ".told"
        self._environment = os.environ | {
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "200",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            **environment,
        }

    def run(self, steps: Sequence[Step], *, replaced: Mapping[str, str], timeout_s: float) -> None:
        """Run the steps with some of their text replaced, hold each against what the page shows, and end what is left.

        Raises AssertionError for one that fails, or prints something else, or for a text that none of them has.
        """
        unused = [old for old in replaced if not any(old in step.text for step in steps)]
        assert not unused, f"no command of the page has {unused}"
        self._told.mkdir()
        # What the service refuses is a failure, also for a command that does not say so.
        (self.folder / ".curlrc").write_text("fail\nshow-error\n")
        script = "".join(self._lines(number, step, replaced) for number, step in enumerate(steps))
        (self._told / "script").write_text(script)
        # A session of its own: what the page starts in the background ends with it.
        shell = subprocess.Popen(
            ["bash", str(self._told / "script")],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with suppress(subprocess.TimeoutExpired):
                shell.wait(timeout_s)
            for number, step in enumerate(steps):
                self._check(number, step)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()

    def _lines(self, number: int, step: Step, replaced: Mapping[str, str]) -> str:
        """Return what the shell is to read: the step, with its output and status in files; it ends after a failure."""
        text = step.text
        for old, new in replaced.items():
            text = text.replace(old, new)
        if step.language == "python":
            (self._told / f"{number}.py").write_text(text)
            text = f"python {shlex.quote(str(self._told / f'{number}.py'))}"
        told = shlex.quote(str(self._told / str(number)))
        return (
            f"{{ {text}\n}} >{told}.out 2>{told}.err\nstatus=$?\necho $status >{told}.status\n[ $status = 0 ] || exit\n"
        )

    def _check(self, number: int, step: Step) -> None:
        out, err, status = (self._told / f"{number}.{kind}" for kind in ("out", "err", "status"))
        assert out.exists(), f"{step}: those before it took too long"
        printed = f"{out.read_text()}\n{err.read_text()}"
        assert status.exists(), f"{step}: it takes too long; so far it printed\n{printed}"
        assert status.read_text() == "0\n", f"{step}: exit status {status.read_text().strip()}; it printed\n{printed}"
        if step.output:
            shown = ".*?".join(re.escape(part) for part in step.output.strip().split("…"))
            assert re.fullmatch(shown, out.read_text().strip(), re.DOTALL), f"{step}: it printed\n{printed}"
