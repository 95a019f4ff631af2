"""Recipes learn: on two ranks, to a figure well above chance."""

from pathlib import Path

from tests.distributed.runs import Run, epochs, prepare


def test_classification_learns_to_tell_ten_patterns_apart(tmp_path: Path) -> None:
    run_dir = prepare(
        tmp_path / "run",
        data="synthetic",
        model="resnet18",
        dropout=None,
        epochs=2,
        batch=20,
        image_size=16,
        optimizer="adamw",
        lr=0.002,
        augment=["random_crop"],
        options={"synthetic": {"train": 400, "val": 200}, "label_smoothing": 0.1},
    )
    Run(run_dir).succeed()
    last = epochs(run_dir)[-1]
    accuracy = last.values["val/accuracy"]
    assert accuracy is not None
    assert accuracy >= 0.6  # chance is 0.1
    assert len(last.by_class) == 10
    assert sum(figures["samples"] or 0 for figures in last.by_class.values()) == 200
    assert sum(figures["correct"] or 0 for figures in last.by_class.values()) == round(200 * accuracy)
