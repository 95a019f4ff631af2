"""The training configuration: what is refused, by the name of its field."""

from typing import get_args

import pytest

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.train_file import train_config


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("batch", True, "true is a truth value"),
        ("epochs", True, "true is a truth value"),
        ("num_workers", False, "false is a truth value"),
        ("lr", True, "true is a truth value"),
        ("patience", True, "true is a truth value"),
        ("amp", True, "'fp16' or 'bf16'"),
        ("model", True, "valid string"),
        ("batch", 0, "1 sample or more"),
        ("augment", ["random_crop", "random_crop"], "named once"),
        ("augment", ["rotate"], "random_crop"),
        ("strategy", "fsdp", "ddp"),
        ("ema", 1, "less than 1"),
        ("nbs", 0, "greater than or equal to 1"),
        ("lr", 1e308, "less than or equal to 1000000"),
        ("weight_decay", 1e308, "less than or equal to 1000000"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_field(field: str, value: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"{field}.*{complaint}"):
        train_config({"model": "resnet18", "data": "digits", field: value})


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("learning_rate", 0.1, "learning_rate is no option; did you mean lr?"),
        ("Batch_Size", 8, "Batch_Size is no option; did you mean batch?"),
        ("momentun", 0.9, "momentun is no option; did you mean momentum?"),
        ("nnode", 2, "nnode is no option; did you mean nnodes?"),
        ("colour", "red", "colour is no option; `python -m trainer catalog` lists all options"),
        ("augment", "random_crop", "augment: write a list, [random_crop]"),
        ("optimizer", "adam", "optimizer: Input should be 'sgd' or 'adamw' (got 'adam'); did you mean adamw?"),
        ("optimizer", "lion", "optimizer: Input should be 'sgd' or 'adamw' (got 'lion')"),
    ],
)
def test_a_slip_is_told_what_it_may_have_meant(field: str, value: object, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        train_config({"model": "resnet18", "data": "digits", field: value})
    assert str(refused.value) == complaint


def test_what_has_to_be_given_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^model: has to be given; data: has to be given$"):
        train_config({})


@pytest.mark.parametrize("field", TrainConfig.model_fields)
def test_every_option_says_by_its_type_whether_it_is_a_truth_value(field: str) -> None:
    annotation = TrainConfig.model_fields[field].annotation
    given = {"model": "resnet18", "data": "digits", field: True}
    if bool in (annotation, *get_args(annotation)):
        assert getattr(train_config(given), field) is True
    else:
        with pytest.raises(ConfigError, match=rf"^{field}: "):
            train_config(given)
