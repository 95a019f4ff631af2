"""Runs that are slow and do not hang: `--runs 100` watches as many of them."""

from pathlib import Path

import pytest

from tests.distributed.runs import Run, draw_images, prepare
from tests.distributed.slow_model import SlowModel
from trainer.caller import Call, pack, write_call

LIMIT_S = 4.0
FIRST_STEP_S = 1.2 * LIMIT_S
EVALUATED_BATCH_S = 0.4 * LIMIT_S
"""Of which rank 1 has five in a row, while rank 0 waits."""


@pytest.mark.timeout(0)
def test_no_slow_start_and_no_slow_evaluation_passes_for_a_hang(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    images = draw_images(tmp_path / "images", train=12, val=20)
    model = SlowModel(image_size=32, first_step_s=FIRST_STEP_S, evaluated_batch_s=EVALUATED_BATCH_S)
    for number in range(int(request.config.getoption("--runs"))):
        run_dir = prepare(
            tmp_path / f"run-{number}",
            data=images,
            call=True,
            model="SlowModel",
            epochs=1,
            batch=4,
            hang_limit_s=LIMIT_S,
        )
        write_call(run_dir, pack(Call(model, ())))
        Run(run_dir).succeed()
