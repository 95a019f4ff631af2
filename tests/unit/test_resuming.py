"""What a run may continue from: an earlier point of itself, also one that an earlier release wrote."""

from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import TensorDataset

from tests.unit.test_checkpoints import checkpoint
from trainer.checkpoints import CheckpointFolder
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import CheckpointError
from trainer.journal import JournalWriter
from trainer.recipes.recipe import TaskData
from trainer.resuming import Resume
from trainer.run_dir import RunConfig, RunDir

DATA = TaskData(TensorDataset(), TensorDataset(), samples="2 train, 1 val", class_names=("a", "b"))
LATER_OPTIONS = {"nbs", "ema", "sync_bn", "strategy", "augment", "dropout", "freeze", "clip_norm", "patience"}


def config(**changes: Any) -> TrainConfig:
    return TrainConfig(model="resnet18", data="digits", **changes)


@pytest.fixture
def old() -> Resume:
    """A checkpoint whose config has none of the options that came later."""
    known = config().model_dump(mode="json", exclude=LATER_OPTIONS)
    return Resume(Path("step-00000001.pt"), checkpoint(1, config=known))


def test_an_option_that_a_checkpoint_does_not_know_was_at_its_default(old: Resume) -> None:
    old.refuse_other_run(config(nbs=None, ema=None), DATA, steps_per_epoch=100)


@pytest.mark.parametrize(
    ("changes", "named"), [({"nbs": 128}, "nbs=None"), ({"ema": 0.9}, "ema=None"), ({"freeze": ["fc"]}, r"freeze=\[\]")]
)
def test_an_option_that_a_checkpoint_does_not_know_cannot_be_turned_on_half_way(
    old: Resume, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(CheckpointError, match=f"made with {named}"):
        old.refuse_other_run(config(**changes), DATA, steps_per_epoch=100)


def test_a_run_does_not_continue_with_other_parts_frozen_and_says_what_to_do_instead() -> None:
    made = Resume(Path("step-00000001.pt"), checkpoint(1, config=config(freeze=["fc", "bn1"]).model_dump(mode="json")))
    made.refuse_other_run(config(freeze=["bn1", "fc"]), DATA, steps_per_epoch=100)
    with pytest.raises(CheckpointError, match=r"freeze=\['bn1', 'fc'\], and .* freeze=\['fc'\]; .* as its weights$"):
        made.refuse_other_run(config(freeze=["fc"]), DATA, steps_per_epoch=100)


def test_another_node_reads_its_own_file_of_what_node_0_continues_from_and_none_of_another_step(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(RunConfig(train=config(), devices=("cpu",)))
    CheckpointFolder(run_dir, JournalWriter(run_dir.journal)).save(checkpoint(1))
    brought = run_dir.checkpoints / "step-00000001.pt"
    node = RankEnvironment(rank=1, local_rank=0, node_rank=1, world_size=2, local_world_size=1)

    on_node_0 = Path("/runs/of/node-0/resume")
    assert Resume.read(on_node_0 / brought.name, node, brought=brought).path == brought
    with pytest.raises(CheckpointError, match="this node does not have it"):
        Resume.read(on_node_0 / "step-00000002.pt", node, brought=brought)
