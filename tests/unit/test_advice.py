"""Advice: what is predicted where nothing could be measured, and what is said of it."""

import pytest

from trainer.advice import Advice, Pace, predicted
from trainer.advise_command import report
from trainer.config import TrainConfig
from trainer.probing import Probe

ALONE = Probe(samples=1000, load_s=0.1, compute_s=0.4, val_s=2)
QUARTER = Probe(samples=1000, load_s=0.03, compute_s=0.15, val_s=2)
MISSING = Pace(4, note="device names 1 of 4")


def advice(*paces: Pace, probe: Probe = ALONE, **fields: object) -> Advice:
    config = TrainConfig.model_validate({"model": "resnet18", "data": "digits", "batch": 64} | fields)
    return Advice(config, ("cuda:0",), steps_per_epoch=16, accumulate=1, probe=probe, paces=paces)


def test_a_pace_that_was_measured_is_not_predicted() -> None:
    pace = Pace(1, 160, (150, 170))
    assert predicted(pace, [pace], ALONE, None, samples=64) == pace


def test_a_rank_of_several_is_predicted_to_work_as_long_as_on_its_share_alone() -> None:
    found = predicted(MISSING, [MISSING], ALONE, QUARTER, samples=64)

    assert found.samples_per_s == pytest.approx(64 / 0.15)
    assert found.note == "device names 1 of 4; time for averaging gradients not counted"


def test_input_that_takes_longer_than_the_step_decides_the_prediction() -> None:
    starved = Probe(samples=1000, load_s=0.5, compute_s=0.15, val_s=2)
    assert predicted(MISSING, [MISSING], ALONE, starved, samples=64).samples_per_s == pytest.approx(64 / 0.5)


def test_what_two_ranks_took_for_their_gradients_is_counted_for_four() -> None:
    two = Pace(2, samples_per_s=64 / 0.25, range_per_s=(200, 300))  # 0.05 s more than half of one rank's work

    found = predicted(MISSING, [two, MISSING], ALONE, QUARTER, samples=64)

    assert found.samples_per_s == pytest.approx(64 / (0.15 + 1.5 * 0.05))
    assert found.note.endswith("with the time for averaging gradients as on two ranks")


def test_a_pace_for_which_the_batch_does_not_divide_stays_unknown() -> None:
    assert predicted(MISSING, [MISSING], ALONE, None, samples=64).samples_per_s is None


def test_the_report_tells_measured_from_predicted_and_names_what_it_cannot_say() -> None:
    said = report(
        advice(
            Pace(1, 160, (150, 170)),
            Pace(2, samples_per_s=256, note="device names 1 of 2; time for averaging gradients not counted"),
            Pace(4, note="batch 66 does not divide among 4 ranks"),
        ),
        steps=20,
    )

    rows = [line for line in said if line.startswith("  ")]
    assert rows == [
        "  1 rank   400 ms a step, 6.25 s an epoch; measured (steps from 376 ms to 427 ms)",
        "  2 ranks  250 ms a step, 3.91 s an epoch; predicted, not measured "
        "(device names 1 of 2; time for averaging gradients not counted)",
        "  4 ranks  not measured: batch 66 does not divide among 4 ranks",
    ]
    assert any(line.startswith("Input: not the limit; ") for line in said)
    assert not any("rough" in line for line in said)


def test_steps_that_differ_much_make_the_figures_rough() -> None:
    assert any("take the figures for rough" in line for line in report(advice(Pace(1, 160, (60, 170))), steps=20))


def test_a_training_set_smaller_than_a_step_is_the_effective_batch() -> None:
    small = Probe(samples=40, load_s=0.1, compute_s=0.4, val_s=2)
    assert advice(Pace(1, 100, (90, 110)), probe=small).samples_per_step == 40
