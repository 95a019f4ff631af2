"""The command `python -m worker`: what it says of itself, and what it refuses, before it starts anything."""

import pytest

from worker.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--help"], 0, "RANKZERO_"),
        (["--devices", "0"], 2, "unrecognized arguments: --devices 0"),
        (["alpha"], 2, "unrecognized arguments: alpha"),
    ],
)
def test_a_worker_takes_no_arguments_and_starts_with_none(
    arguments: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["worker", *arguments])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == status
    output = capsys.readouterr()
    assert said in (output.out if status == 0 else output.err)
