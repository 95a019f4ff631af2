"""Pieces of a rank's log lose nothing, and break neither lines nor characters."""

from pathlib import Path

import pytest

from worker.log_pieces import PIECE_BYTES, read_piece


def _pieces(path: Path) -> list[bytes]:
    pieces: list[bytes] = []
    while piece := read_piece(path, sum(map(len, pieces)), final=True):
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize("character", ["a", "ж", "語", "🔥"])
@pytest.mark.parametrize("before", range(4))
def test_no_character_of_a_line_that_is_longer_than_a_piece_is_cut(character: str, before: int, tmp_path: Path) -> None:
    text = "x" * before + character * (PIECE_BYTES + 1)
    (tmp_path / "0.log").write_text(text, encoding="utf-8")
    pieces = _pieces(tmp_path / "0.log")
    assert len(pieces) > 1
    assert "".join(piece.decode("utf-8") for piece in pieces) == text


def test_what_is_no_text_is_carried_over_as_well(tmp_path: Path) -> None:
    content = b"\xbf\xff" * PIECE_BYTES
    (tmp_path / "0.log").write_bytes(content)
    assert b"".join(_pieces(tmp_path / "0.log")) == content


def test_a_line_that_has_no_end_yet_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"one\ntwo")
    assert read_piece(tmp_path / "0.log", 0, final=False) == b"one\n"
    assert read_piece(tmp_path / "0.log", 4, final=False) == b""
    assert read_piece(tmp_path / "0.log", 4, final=True) == b"two"


def test_a_log_that_is_not_there_has_no_piece(tmp_path: Path) -> None:
    assert read_piece(tmp_path / "0.log", 0, final=True) == b""
