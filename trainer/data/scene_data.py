"""Scene data: what segmentation and detection train on, scenes and their images, without those that cannot be read."""

from dataclasses import dataclass

from trainer.config import TrainConfig
from trainer.data.decoded import ImageSource, open_images
from trainer.data.known import data_path
from trainer.data.scenes import Needs, Scenes, open_scenes
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
    scenes = open_scenes(data_path(config.data), needs=needs)
    sets = [[scene.path for scene in members] for members in (scenes.train, scenes.val)]
    opened = open_images(*sets, config=config, group=group)
    scenes = scenes.without(opened.broken, warnings=opened.warnings)
    train_images, val_images = opened.sources
    return SceneData(scenes, train_images, val_images, opened.notes)
