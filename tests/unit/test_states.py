"""The states: the chart in the docs, the table in code and what each state says of itself are one."""

import ast
import inspect
import re
import textwrap
from enum import StrEnum
from pathlib import Path

import pytest

from jobs import states
from jobs.outcomes import INFRASTRUCTURE
from jobs.states import TRANSITIONS, Intent, Outcome, State
from trainer.errors import Cause

PAGE = Path(__file__).parents[2] / "docs" / "job-lifecycle.md"
EDGE = re.compile(r"^(\S+) --> (\S+?)(?:: .+)?$")
OUTSIDE = "[*]"


def chart() -> list[tuple[str, str]]:
    """Every arrow of the page's one state diagram."""
    (drawing,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    matches = [EDGE.match(line.strip()) for line in drawing.strip().splitlines()]
    assert all(matches), "the chart has a line that is no arrow"
    return [(match[1], match[2]) for match in matches if match]


def docstrings(kind: type[StrEnum]) -> dict[str, str]:
    """The docstring below each member of an enumeration, by the member's value."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for member, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(member, ast.Assign)
            and isinstance(member.targets[0], ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[kind[member.targets[0].id].value] = " ".join(str(below.value.value).split())
    return found


def test_the_chart_draws_exactly_the_transitions_of_the_table() -> None:
    drawn = [edge for edge in chart() if OUTSIDE not in edge]

    assert len(drawn) == len(set(drawn)), "an arrow is drawn twice"
    assert set(drawn) == {(source.value, target.value) for source in State for target in TRANSITIONS[source]}


def test_the_chart_begins_at_queued_and_ends_at_the_final_states() -> None:
    assert [target for source, target in chart() if source == OUTSIDE] == ["queued"]
    assert {source for source, target in chart() if target == OUTSIDE} == {
        state.value for state in State if state.is_terminal
    }


def test_every_state_has_a_row_in_the_table() -> None:
    assert TRANSITIONS.keys() == set(State)


def test_every_state_can_be_reached_and_no_state_leads_to_itself() -> None:
    reached = {target for targets in TRANSITIONS.values() for target in targets} | {State.QUEUED}

    assert reached == set(State)
    assert [state for state in State if state in TRANSITIONS[state]] == []


def test_every_state_can_come_to_an_end() -> None:
    ends = {state for state in State if state.is_terminal}
    for _ in State:
        ends |= {state for state in State if TRANSITIONS[state] & ends}

    assert ends == set(State)


def test_success_comes_only_from_running() -> None:
    assert [state for state in State if State.SUCCEEDED in TRANSITIONS[state]] == [State.RUNNING]


def test_a_cancel_ends_every_state_that_is_not_final() -> None:
    assert [state for state in State if not state.is_terminal and State.CANCELLED not in TRANSITIONS[state]] == []


@pytest.mark.parametrize("state", State)
def test_what_a_state_says_of_itself_is_on_the_page(state: State) -> None:
    said = docstrings(State)[state]

    assert f"| `{state}` | {said} |" in PAGE.read_text()


@pytest.mark.parametrize("state", [state for state in State if not state.is_terminal])
def test_a_state_says_what_leaves_it_and_who_rescues_it(state: State) -> None:
    assert re.search(r"Left (when|at|on) .*[Rr]escue", docstrings(State)[state])


@pytest.mark.parametrize("state", [state for state in State if state.is_terminal])
def test_a_terminal_state_says_whether_it_is_final(state: State) -> None:
    said = docstrings(State)[state]

    assert said.endswith("Left only when its user asks for another try." if TRANSITIONS[state] else "Final.")


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_on_the_page(outcome: Outcome) -> None:
    assert re.search(rf"^\| `{outcome}` \|", PAGE.read_text(), flags=re.MULTILINE)


def test_the_page_sorts_every_cause_as_the_code_does() -> None:
    rows = dict(re.findall(r"^\| `(failed|lost)` \| a fault of the [^:]*: ([^|]*?) \|", PAGE.read_text(), re.MULTILINE))
    causes = {outcome: set(re.findall(r"`(\w+)`", listed)) for outcome, listed in rows.items()}

    assert causes == {"failed": set(Cause) - INFRASTRUCTURE, "lost": set(INFRASTRUCTURE)}


def test_every_intent_is_on_the_page() -> None:
    page = PAGE.read_text()

    assert [intent for intent in Intent if f"`{intent}`" not in page] == []


def test_the_module_says_where_the_chart_and_the_function_are() -> None:
    source = inspect.getsource(states)

    assert "docs/job-lifecycle.md" in source
    assert "jobs.store.transitions" in source
