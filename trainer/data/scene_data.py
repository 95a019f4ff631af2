"""Scene data: what segmentation and detection train on, scenes and their images, without those that cannot be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trainer.config import TrainConfig
from trainer.data.decoded import ImageSource, open_images
from trainer.data.known import data_path
from trainer.data.scenes import Needs, Scenes, open_scenes
from trainer.data.screening import survey
from trainer.process_group import ProcessGroup


@dataclass(frozen=True, eq=False)
class SceneData:
    """A data set for segmentation or detection."""

    scenes: Scenes
    train_images: ImageSource
    """Those of `scenes.train`, in its order."""
    val_images: ImageSource
    notes: tuple[str, ...]


def open_scene_data(config: TrainConfig, *, needs: Needs, group: ProcessGroup) -> SceneData:
    """Open the folder that `data` names, with images of `image_size`; every rank has to call.

    Raises ConfigError for the name of a data set (none has objects), and DataError for what is missing or wrong.
    """

    def shared_out(paths: Sequence[Path], look: Callable[[Path], Any]) -> Sequence[Any]:
        look_at = partial(_look_at, paths, look)
        return survey(len(paths), look_at, matter="scenes", num_workers=config.num_workers, group=group)

    scenes = open_scenes(data_path(config.data), needs=needs, survey=shared_out)
    sets = [[scene.path for scene in members] for members in (scenes.train, scenes.val)]
    sizes = [scene.size for scene in (*scenes.train, *scenes.val)]
    opened = open_images(*sets, config=config, group=group, sizes=sizes)
    scenes = scenes.without(opened.broken, warnings=opened.warnings)
    train_images, val_images = opened.sources
    return SceneData(scenes, train_images, val_images, opened.notes)


def _look_at(paths: Sequence[Path], look: Callable[[Path], Any], index: int) -> Any:
    return look(paths[index])
