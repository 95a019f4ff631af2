"""The last lines of a log, as they go into an error report."""

from pathlib import Path

from trainer.log_tail import log_tail


def test_the_last_40_lines_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    tail = log_tail(log)
    assert tail is not None
    assert tail.splitlines() == [f"line {number}" for number in range(960, 1000)]


def test_no_more_than_8_kib_are_kept_and_no_character_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("начало " + "ё" * 10_000 + "\nend")
    tail = log_tail(log)
    assert tail is not None
    assert len(tail.encode()) <= 8 * 1024
    assert set(tail) == set("ё\nend")


def test_a_progress_bar_is_kept_as_it_looked_last_and_what_is_no_text_is_marked(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(b"1 %\r2 %\r3 %\r\nbad \xff\x00 bytes\r\n\n")
    assert log_tail(log) == "3 %\nbad \ufffd\ufffd bytes"


def test_a_log_with_nothing_in_it_and_one_that_is_not_there_have_no_tail(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    assert log_tail(log) is None
    log.write_bytes(b"\n")
    assert log_tail(log) is None


def test_the_stacks_that_the_hang_watch_asked_for_are_no_part_of_what_was_printed(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    stack = 'Current thread 0x1f (most recent call first):\n  File "/a.py", line 3 in wait\n'
    dump = f"\nhang watch: the stacks of this process, 7:\n{stack}\nThread 0x2f (most recent call first):\n  ...\n"
    log.write_text(f"before{dump}after\n{stack}{dump}")
    assert log_tail(log) == f"before\nafter\n{stack}".rstrip("\n")
    log.write_text(dump)
    assert log_tail(log) is None
