"""Learning-rate hints: the scaling rules, and what is said of a config."""

import pytest

from trainer.config import TrainConfig
from trainer.learning_rates import hints, usual_learning_rate


def config(**fields: object) -> TrainConfig:
    return TrainConfig.model_validate({"model": "resnet18", "data": "digits"} | fields)


@pytest.mark.parametrize(
    ("optimizer", "samples", "usual"),
    [("sgd", 256, 0.1), ("sgd", 8192, 3.2), ("adamw", 1024, 1e-3), ("adamw", 256, 5e-4)],
)
def test_the_usual_rate_grows_with_the_batch_for_sgd_and_with_its_root_for_adamw(
    optimizer: str, samples: int, usual: float
) -> None:
    assert usual_learning_rate(optimizer, samples=samples) == pytest.approx(usual)


def test_a_rate_that_is_usual_has_nothing_said_against_it() -> None:
    (told,) = hints(config(lr=0.1), samples=256)
    assert told.startswith("lr 0.1; usual for 256 samples a step is 0.1 (sgd, ")


@pytest.mark.parametrize(("lr", "complaint"), [(1.0, "yours is 10 times that"), (0.01, "yours is 1/10 of that")])
def test_a_rate_far_from_the_usual_is_told(lr: float, complaint: str) -> None:
    _, told = hints(config(lr=lr), samples=256)
    assert told.startswith(complaint)
    assert told.endswith("else try 0.1")


def test_a_large_batch_wants_a_warm_up_unless_it_has_one() -> None:
    *_, told = hints(config(lr=0.4, epochs=4), samples=1024)
    assert told == "a step of so many samples wants a warm-up: warmup_epochs: 3"
    for warm in ({"warmup_epochs": 2}, {"schedule": "one_cycle"}):
        assert len(hints(config(lr=0.4, epochs=4, **warm), samples=1024)) == 1
