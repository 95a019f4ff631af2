"""How the commands of a page are found and run: what the tests of the pages rest on."""

from pathlib import Path

import pytest

from tests import pages
from tests.pages import Shell, Step, steps

PAGE = """A page.

    rankzero ls           # lists
    curl http://host/jobs --json '{
      "device": "0"}'

Which stores

    {"no": "command"}

```console
$ cd here && export A=1
$ echo $A \\
  more
1 more
```

```python
print("a program")
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return "page.md"


def run(folder: Path, *texts: str, output: str = "", timeout_s: float = 30) -> None:
    todo = [Step("page.md", number, text) for number, text in enumerate(texts)]
    todo[-1] = Step("page.md", len(texts), texts[-1], output=output)
    Shell(folder).run(todo, replaced={}, timeout_s=timeout_s)


def test_each_command_and_program_of_a_page_is_found_with_what_it_prints(page: str) -> None:
    found = [(step.line, step.name, step.language, step.output) for step in steps(page)]
    assert found == [
        (3, "rankzero ls", "sh", ""),
        (4, "curl http://host/jobs --json '{", "sh", ""),
        (12, "cd here && export A=1", "sh", ""),
        (13, "echo $A \\", "sh", "1 more\n"),
        (19, 'print("a program")', "python", ""),
    ]


def test_what_a_command_leaves_in_the_shell_is_there_for_the_next(tmp_path: Path) -> None:
    run(tmp_path, "mkdir here && cd here && export A=1", "echo $A in $(basename $PWD)", output="1 in …re\n")


@pytest.mark.parametrize(
    ("texts", "output", "said"),
    [
        (("true", "exit 3", "true"), "", "page.md:1: exit 3"),
        (("false", "true"), "", "page.md:0: false: exit status 1"),
        (("echo one",), "two\n", "it printed\none"),
        (("curl -s file:///nowhere",), "", "exit status 37"),
    ],
)
def test_a_command_that_fails_or_prints_something_else_is_told(
    texts: tuple[str, ...], output: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError) as failed:
        run(tmp_path, *texts, output=output)
    assert said in str(failed.value)


def test_a_command_that_does_not_end_is_told_with_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"sleep 60: it takes too long; so far it printed\nbegun"):
        run(tmp_path, "echo begun; sleep 60", timeout_s=1)


def test_what_is_to_be_replaced_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no command of the page has"):
        Shell(tmp_path).run([Step("page.md", 1, "true")], replaced={"false": "true"}, timeout_s=30)
