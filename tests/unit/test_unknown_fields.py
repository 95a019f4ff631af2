"""What is said of a field that no spec has."""

from collections.abc import Sequence

import pytest

from jobs.unknown_fields import NO_SUCH_FIELD, describe_unknown


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (["train", "learning_rate"], "; did you mean lr?"),
        (["train", "optimiser"], "; did you mean optimizer?"),
        (["train", "device"], "; `device` stands beside `train`"),
        (["train", "gpus"], "; `device` stands beside `train`"),
        (["epochs"], "; `epochs` stands in `train`"),
        (["batch_size"], "; `batch` stands in `train`"),
        (["devise"], "; did you mean device?"),
        (["gpus"], "; did you mean device?"),
        (["train", "xyzzy"], ""),
        (["xyzzy"], ""),
        (["start_from", "epochs"], ""),
    ],
)
def test_an_unknown_field_is_told_with_the_one_it_may_stand_for(path: Sequence[str], hint: str) -> None:
    assert describe_unknown(path) == NO_SUCH_FIELD + hint
