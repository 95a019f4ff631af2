"""The table of the fault tests: what may and what may not look like a whole row."""

import pytest

from tests.faults.matrix.faults import FAULTS
from tests.faults.matrix.table import BEGIN, END, Page, Row, Trials, fault_of, names

pytest_plugins = ["pytester"]

FAULT = FAULTS[0].name


def nodeid(number: int) -> str:
    return f"tests/faults/test_matrix.py::test_a_fault_breaks_no_law[{FAULTS[0].slug}-{number:02}]"


def report(test: str, outcome: str, *, when: str = "call", **told: object) -> pytest.TestReport:
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when, user_properties=list(told.items()))  # type: ignore[arg-type]  # whatever pytest and its plugins send


def row_of(*reports: pytest.TestReport, planned: int | None = None) -> Row:
    trials = Trials(FAULT, planned)
    for each in reports:
        trials.add(each)
    return trials.row("by a test")


def test_a_row_counts_its_trials_and_has_the_slowest_recovery() -> None:
    row = row_of(*(report(nodeid(n), "passed", fault=FAULT, recovery_s=n + 0.25) for n in range(3)), planned=3)

    assert row == Row(FAULT, "3", 0, "2.2 s", "by a test")


def test_a_trial_that_broke_is_a_repeat_and_counts_once_whatever_else_breaks_after_it() -> None:
    row = row_of(report(nodeid(0), "failed", fault=FAULT), report(nodeid(0), "failed", when="teardown", fault=FAULT))

    assert (row.repeats, row.broken) == ("1", 1)


@pytest.mark.parametrize("when", ["setup", "teardown", "???"])
def test_what_breaks_beside_a_trial_breaks_the_row_also_the_death_of_its_test_process(when: str) -> None:
    assert row_of(report(nodeid(0), "failed", when=when)).broken == 1


def test_a_skipped_trial_is_shown_as_skipped_and_no_repeat() -> None:
    row = row_of(report(nodeid(0), "passed", fault=FAULT), report(nodeid(1), "skipped", fault=FAULT), planned=2)

    assert row.repeats == "1, 1 skipped"


def test_a_run_that_was_interrupted_shows_how_many_trials_there_were_to_be() -> None:
    assert row_of(report(nodeid(0), "passed", fault=FAULT), planned=20).repeats == "1 of 20"


def test_a_test_of_many_repeats_counts_them_all_and_shards_add_up() -> None:
    row = row_of(
        report("one", "passed", fault=FAULT, repeats=2500), report("other", "passed", fault=FAULT, repeats=500)
    )

    assert row.repeats == "3000"


def test_a_trial_that_could_not_tell_its_fault_is_known_by_the_id_of_its_test() -> None:
    assert fault_of(nodeid(7)) == FAULT


def test_a_test_of_no_row_has_none() -> None:
    assert fault_of("tests/faults/test_life.py::test_something") is None


def test_tests_beside_the_matrix_have_a_row_for_each_engine() -> None:
    told = [
        fault_of(f"tests/faults/{test}")
        for test in (
            "test_sequences.py::test_it[sqlite-03]",
            "test_races.py::test_it[postgresql]",
            "test_chaos.py::test_it",
        )
    ]

    assert told[:2] == ["a sequence of calls on SQLite", "a cancel races the claim on PostgreSQL"]
    assert set(told) <= set(names())


def test_a_run_replaces_its_own_rows_and_leaves_those_of_other_runs_in_the_order_of_the_faults() -> None:
    first, second = FAULTS[0].name, FAULTS[1].name
    other = "a cancel races the claim on SQLite"
    old = [Row(second, "20", 1, "9.0 s", "an older run"), Row(other, "1000", 0, "", "an older run")]
    page = Page("# Title\n", old, "\nThe rest.\n")

    merged = page.merged(
        [Row(second, "20", 0, "3.0 s", "this run"), Row(first, "20", 0, "", "this run")], order=names()
    )

    assert [(row.fault, row.broken, row.run) for row in merged.rows] == [
        (first, 0, "this run"),
        (second, 0, "this run"),
        (other, 0, "an older run"),
    ]
    assert Page.parse(merged.text()) == merged


def test_the_row_of_a_fault_that_is_gone_goes_with_the_next_run() -> None:
    gone = Row("kill -9 of a server that is no more", "20", 0, "", "an older run")
    news = Row(FAULT, "20", 0, "", "this run")

    assert Page("", [gone], "").merged([news], order=names()).rows == [news]


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="without"):
        Page.parse("# Title\n")


def test_a_run_that_breaks_is_written_all_the_same(pytester: pytest.Pytester) -> None:
    page = pytester.path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    pytester.makeconftest(
        """
        from tests.faults.matrix.table import Table

        def pytest_addoption(parser):
            for name in ("--table", "--seed"):
                parser.addoption(name)
            parser.addoption("--instants", type=int, default=1)
            parser.addoption("--hold-scale", type=float, default=0.1)

        def pytest_configure(config):
            config.pluginmanager.register(Table(config))
        """
    )
    pytester.makepyfile(
        """
        def test_it(record_property):
            record_property("fault", "something")
            assert False
        """
    )

    result = pytester.runpytest_inprocess("--table", str(page))

    result.assert_outcomes(failed=1)
    (row,) = Page.parse(page.read_text()).rows
    assert (row.fault, row.repeats, row.broken) == ("something", "1", 1)
    assert "outages scaled by 0.1" in row.run
