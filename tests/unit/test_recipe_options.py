"""A recipe's own options against its schema: what an error says of them."""

from typing import Any

import pytest

from jobs.errors import InvalidSpecError
from jobs.recipe_options import check_options

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "share": {"type": "number", "exclusiveMaximum": 1},
        "kind": {"enum": ["a", "b"]},
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
        "names": {"type": "object", "propertyNames": {"maxLength": 3}},
        "sizes": {"type": "array", "uniqueItems": True},
        "patience_of": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"share": 2}, "train.options.share", "2 is greater than or equal to the maximum of 1"),
        ({"kind": "c"}, "train.options.kind", "'c' is not one of ['a', 'b']"),
        ({"weights": {"cat": "heavy"}}, "train.options.weights.cat", "'heavy' is not of type 'number'"),
        ({"shares": 1}, "train.options.shares", "is no option of this recipe; did you mean share?"),
        (
            {"mask": 1},
            "train.options.mask",
            "is no option of this recipe; there are share, kind, weights, names, sizes, patience_of",
        ),
        (
            {"patience": 3},
            "train.options.patience",
            "is no option of this recipe; patience is a field of `train` itself, beside `options`",
        ),
    ],
)
def test_an_option_that_does_not_fit_is_named_with_what_is_wrong(
    options: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        check_options(options, [SCHEMA])
    assert (raised.value.field, raised.value.message) == (field, message)


LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"share": LONG}, "is not of type 'number'"),
        ({"kind": LONG}, "is not one of ['a', 'b']"),
        ({"weights": {LONG: "heavy"}}, "'heavy' is not of type 'number'"),
        ({"names": {LONG: 1}}, "is too long"),
        ({"sizes": [1] * 100_000}, "has non-unique elements"),
        ({LONG: 1}, "share, kind, weights, names, sizes, patience_of"),
    ],
)
def test_what_was_given_is_shown_by_its_beginning_and_what_is_wrong_with_it_whole(
    options: dict[str, Any], end: str
) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        check_options(options, [SCHEMA])
    assert raised.value.message.endswith(end)
    assert len(str(raised.value)) < 300
