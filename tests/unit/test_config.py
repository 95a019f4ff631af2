"""The training configuration: what is refused, by the name of its field."""

import pytest

from trainer.errors import ConfigError
from trainer.train_file import train_config


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("batch", True, "true is a truth value"),
        ("epochs", True, "true is a truth value"),
        ("num_workers", False, "false is a truth value"),
        ("lr", True, "true is a truth value"),
        ("batch", 0, "1 sample or more"),
        ("augment", ["random_crop", "random_crop"], "named once"),
        ("augment", ["rotate"], "random_crop"),
        ("strategy", "fsdp", "ddp"),
        ("ema", 1, "less than 1"),
        ("nbs", 0, "greater than or equal to 1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_field(field: str, value: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"{field}.*{complaint}"):
        train_config({"model": "resnet18", "data": "digits", field: value})


def test_sync_bn_is_a_truth_value() -> None:
    assert train_config({"model": "resnet18", "data": "digits", "sync_bn": False}).sync_bn is False
