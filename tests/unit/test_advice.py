"""Advice: what is predicted where nothing could be measured, and what is said of it."""

from dataclasses import replace

import pytest

from trainer.advice import Advice, Pace, predicted, with_share
from trainer.advise_command import report
from trainer.config import TrainConfig
from trainer.micro_batches import accumulated_batches
from trainer.probing import Timings
from trainer.run_dir import RunConfig


def timings(*, load_s: float, compute_s: float, loads_ahead: bool = True) -> Timings:
    return Timings(samples=1000, load_s=load_s, compute_s=compute_s, val_s=2, loads_ahead=loads_ahead)


ALONE = timings(load_s=0.1, compute_s=0.4)
QUARTER = timings(load_s=0.03, compute_s=0.15)
MISSING = Pace(4, note="device names 1 of 4")


def advice(*paces: Pace, timings: Timings = ALONE, **fields: object) -> Advice:
    config = TrainConfig.model_validate({"model": "resnet18", "data": "digits", "batch": 64} | fields)
    return Advice(config, ("cuda:0",), steps_per_epoch=16, accumulate=1, timings=timings, paces=paces)


def test_a_pace_that_was_measured_is_not_predicted() -> None:
    pace = Pace(1, 160, (150, 170))
    assert predicted(pace, [pace], ALONE, None, samples=64) == pace


def test_a_rank_of_several_is_predicted_to_work_as_long_as_on_its_share_alone() -> None:
    found = predicted(MISSING, [MISSING], ALONE, QUARTER, samples=64)

    assert found.samples_per_s == pytest.approx(64 / 0.15)
    assert found.note == "device names 1 of 4; time for averaging gradients not counted"


def test_input_that_takes_longer_than_the_step_decides_the_prediction() -> None:
    starved = timings(load_s=0.5, compute_s=0.15)
    assert predicted(MISSING, [MISSING], ALONE, starved, samples=64).samples_per_s == pytest.approx(64 / 0.5)


def test_a_rank_that_loads_by_itself_is_predicted_to_load_and_then_to_compute() -> None:
    alone = timings(load_s=0.4, compute_s=0.4, loads_ahead=False)
    share = timings(load_s=0.1, compute_s=0.1, loads_ahead=False)
    two = Pace(2, samples_per_s=64 / 0.5, range_per_s=(100, 150))  # 0.1 s more than half of one rank's work

    assert predicted(MISSING, [MISSING], alone, share, samples=64).samples_per_s == pytest.approx(64 / 0.2)
    after_two = predicted(MISSING, [two, MISSING], alone, share, samples=64)
    assert after_two.samples_per_s == pytest.approx(64 / (0.2 + 1.5 * 0.1))


@pytest.mark.parametrize(("batch", "nbs"), [(4, 6), (4, 10), (8, 12), (8, 8), (8, 3), (8, None)])
def test_a_share_accumulates_as_many_batches_as_the_whole(batch: int, nbs: int | None) -> None:
    train = TrainConfig(model="resnet18", data="digits", batch=batch, nbs=nbs)
    for world_size in (2, 4):
        share = with_share(RunConfig(train=train, devices=("cpu",)), world_size).train
        assert share.batch == batch // world_size
        assert accumulated_batches(share) == accumulated_batches(train)


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


def test_input_that_the_rank_loads_itself_is_said_to_come_on_top_of_each_step() -> None:
    alone = timings(load_s=0.3, compute_s=0.4, loads_ahead=False)
    said = report(advice(Pace(1, 90, (80, 100)), timings=alone, num_workers=0), steps=20)

    (line,) = (line for line in said if line.startswith("Input: "))
    assert line.startswith("Input: it comes on top of each step; the rank itself (num_workers: 0) takes 300 ms for")
    assert line.endswith("With num_workers of 1 or more, the two go on at the same time.")


def test_steps_that_differ_much_make_the_figures_rough() -> None:
    assert any("take the figures for rough" in line for line in report(advice(Pace(1, 160, (60, 170))), steps=20))


def test_a_training_set_smaller_than_a_step_is_the_effective_batch() -> None:
    small = replace(ALONE, samples=40)
    assert advice(Pace(1, 100, (90, 110)), timings=small).samples_per_step == 40
