"""Validation does not depend on how many ranks share it: the same numbers, each sample counted once."""

import json
import math
import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from torch._C._distributed_c10d import FileStore
from torch.multiprocessing.spawn import start_processes

from tests.distributed.runs import TINY, draw_images
from trainer.assembly import assemble
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.evaluation import evaluate
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Evaluation, TaskData
from trainer.run_dir import RunConfig, RunDir

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="a forked process cannot compute on macOS")


def measure_on(ranks: int, data: Path, folder: Path) -> Evaluation:
    """Validate a fresh model on `data`, shared among forked Gloo ranks; rank 0 summarises, and all have its metrics.

    Forked, since of four processes that only validate 11 images, each would first import torch for seconds.
    """
    folder.mkdir()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, such as those of torch, which the ranks make no use of.
        warnings.simplefilter("ignore", DeprecationWarning)
        start_processes(_measure, (ranks, data, folder), nprocs=ranks, start_method="fork")  # type: ignore[no-untyped-call]  # torch's own
    results = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    assert [result["summaries"] for result in results] == [1] + [0] * (ranks - 1)
    metrics = results[0]["metrics"]
    assert [json.dumps(result["metrics"]) for result in results] == [json.dumps(metrics)] * ranks  # NaN is itself here
    assert math.isnan(metrics.pop("val/odd"))
    return Evaluation(metrics, results[0]["by_class"])


def _measure(rank: int, ranks: int, data: Path, folder: Path) -> None:
    torch.set_num_threads(1)  # a forked process has none of the threads that torch would share work with
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    environment = RankEnvironment(rank=rank, local_rank=rank, world_size=ranks, local_world_size=ranks)
    store = FileStore(str(folder / "store"), ranks) if ranks > 1 else None
    group = ProcessGroup.join(environment, store, device="cpu", simulated=False, timeout_s=60)
    train = TrainConfig.model_validate(TINY | {"data": str(data), "batch": 12})
    parts = assemble(
        RunDir(folder), RunConfig(train=train, devices=("cpu",) * ranks), group, batch=None, is_continued=False
    )
    recipe, summaries = parts.recipe, []
    summarize = recipe.summarize

    def summarize_oddly(totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:
        summaries.append(summarize(totals, count, data))
        return replace(summaries[0], metrics=summaries[0].metrics | {"val/odd": math.nan})

    recipe.summarize = summarize_oddly  # type: ignore[method-assign]  # to look in
    found = evaluate(
        parts.evaluated,
        parts.val_loader,
        recipe=recipe,
        data=parts.data,
        group=group,
        matter="test",
        autocast=nullcontext,
        stop_requested=lambda: False,
        alive=lambda: None,
    )
    assert found is not None
    (folder / f"{rank}.json").write_text(json.dumps(asdict(found) | {"summaries": len(summaries)}))
    group.wait_for_all()
    group.leave()


@pytest.mark.parametrize("samples", [1, 9, 11])
def test_samples_measure_the_same_on_one_two_three_and_four_ranks(samples: int, tmp_path: Path) -> None:
    # At 12, 6, 4 and 3 samples a batch; of a single sample, most ranks have none.
    data = draw_images(tmp_path / "images", train=12, val=samples, classes=6)
    alone = measure_on(1, data, tmp_path / "1")
    assert alone.metrics.keys() == {"val/loss", "val/accuracy", "val/top5"}
    assert [figures["samples"] for figures in alone.by_class.values()] == [
        (samples + 5 - label) // 6 for label in range(6)
    ]
    right = sum(figures["correct"] for figures in alone.by_class.values())
    assert right == pytest.approx(alone.metrics["val/accuracy"] * samples)
    for ranks in (2, 3, 4):
        together = measure_on(ranks, data, tmp_path / str(ranks))
        assert together.metrics == pytest.approx(alone.metrics, abs=1e-6)
        assert together.by_class == alone.by_class
        for name in ("val/accuracy", "val/top5"):
            counted = together.metrics[name] * samples
            assert counted == pytest.approx(round(counted), abs=1e-9)
            assert round(counted) == round(alone.metrics[name] * samples)
