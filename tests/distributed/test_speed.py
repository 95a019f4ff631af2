"""The options that make steps faster, or show why they are slow: the weights that they leave are the same."""

import json
import sys
from pathlib import Path

from tests.distributed.runs import largest_difference, last_weights, metrics, records, start
from trainer.journal import Log
from trainer.run_dir import RunDir

SCRIPT = """
import sys
import torch
from torch import nn
from trainer import train


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, images):
        # What the options are to bring about, or another loss.
        expected = torch.channels_last if sys.argv[2:] else torch.contiguous_format
        formats = [tensor.is_contiguous(memory_format=expected) for tensor in (images, self.body[0].weight)]
        return self.head(self.body(images).mean((2, 3))) * (1 if all(formats) else 2)


if __name__ == "__main__":
    torch.manual_seed(3)
    data, *names = sys.argv[1:]
    options = {"image_size": 16, "batch": 12, "epochs": 2, "lr": 0.05, "ema": 0.9, "num_workers": 0, "device": "cpu"}
    train(model=Net(), data=data, output="fast" if names else "plain", **options, **dict.fromkeys(names, True))
"""


def test_compiled_channels_last_traced_steps_leave_the_same_weights_and_the_log_says_what_has_no_effect(
    tmp_path: Path, images: Path
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    for options in ((), ("compile", "channels_last", "profile", "cuda_graph")):
        trained = start(sys.executable, "script.py", str(images), *options, folder=tmp_path)
        assert trained.returncode == 0, trained.stderr
    plain, fast = RunDir(tmp_path / "plain"), RunDir(tmp_path / "fast")

    assert largest_difference(last_weights(plain), last_weights(fast)) < 1e-4
    losses = [values["val/loss"] for values in metrics(plain).values() if "val/loss" in values]
    assert len(losses) == 2
    for loss, values in zip(losses, (metrics(fast)[step] for step in (4, 8)), strict=True):
        assert loss is not None
        assert values["val/loss"] is not None
        assert abs(values["val/loss"] - loss) < 1e-4

    said = [record.message for record in records(fast) if isinstance(record, Log)]
    trace = fast.profile / "steps-1-4.json"
    assert f"profile: a trace of steps 1 to 4 is in {trace}" in said
    assert any("cuda_graph: without effect here" in message and "this is cpu" in message for message in said)
    names = [event.get("name", "") for event in json.loads(trace.read_text())["traceEvents"]]
    assert sum(name.startswith("ProfilerStep#") for name in names) == 4
    assert any("Compiled" in name for name in names)
