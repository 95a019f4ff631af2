"""Data roots in the trainer: no file outside of them is read, whatever a data set's lists name or its links lead to."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from jobs.settings import Settings
from tests.shapes import write_coco, write_voc, write_yolo
from trainer.config import TrainConfig
from trainer.data import data_files
from trainer.data.cifar import read_names
from trainer.data.data_files import open_file
from trainer.data.image_folder import open_image_folder
from trainer.data.images import read_image
from trainer.data.mnist import read_images
from trainer.data.scenes import Scenes, open_scenes
from trainer.errors import DataError
from trainer.run_dir import DATA_WITHIN_VARIABLE
from worker import roots

OUTSIDE = "outside of the folders"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one folder that data is read from; beside it there is an image in a folder that is none."""
    (tmp_path / "outside").mkdir()
    Image.new("RGB", (96, 96)).save(tmp_path / "outside" / "secret.jpg")
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")  # where a root lies, its operator says
    monkeypatch.setenv(DATA_WITHIN_VARIABLE, json.dumps([str(tmp_path / "root")]))
    data_files._folders.cache_clear()
    yield tmp_path / "root"
    monkeypatch.delenv(DATA_WITHIN_VARIABLE)
    data_files._folders.cache_clear()


def read_all(scenes: Scenes) -> None:
    for scene in (*scenes.train, *scenes.val):
        read_image(scene.path, size=8)


def test_a_file_is_read_where_it_lies_below_a_root_and_a_link_only_where_it_leads_there(root: Path) -> None:
    (root / "a.txt").write_text("a")
    (root / "link.txt").symlink_to(root / "a.txt")
    (root / "out.jpg").symlink_to(root.parent / "outside" / "secret.jpg")
    for name in ("a.txt", "link.txt", "../root/a.txt"):
        with open_file(root / name) as file:
            assert file.read() == b"a"
    for path in (root / "out.jpg", root / ".." / "outside" / "secret.jpg", Path("/etc/passwd")):
        with pytest.raises(PermissionError, match=OUTSIDE):
            open_file(path)


def test_a_folder_whose_name_begins_like_a_root_s_is_another_folder(root: Path) -> None:
    other = root.parent / "real-too"
    other.mkdir()
    (other / "a.txt").write_text("a")
    with pytest.raises(PermissionError, match=OUTSIDE):
        open_file(other / "a.txt")


def test_without_roots_data_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with open_file(tmp_path / "a.txt") as file:
        assert file.read() == b"a"


def test_a_list_of_coco_names_no_image_outside(root: Path) -> None:
    write_coco(root, train=2, val=1)
    read_all(open_scenes(root, needs="boxes"))
    (path,) = (root / "annotations").glob("instances_train*.json")
    content: dict[str, Any] = json.loads(path.read_text())
    content["images"][0]["file_name"] = "../../outside/secret.jpg"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=OUTSIDE):
        read_all(open_scenes(root, needs="boxes"))


@pytest.mark.parametrize("listed", ["../outside/secret.jpg", "ABSOLUTE"])
def test_a_list_of_yolo_names_no_image_outside(root: Path, listed: str) -> None:
    write_yolo(root, train=2, val=1)
    read_all(open_scenes(root, needs="boxes"))
    named = listed.replace("ABSOLUTE", str(root.parent / "outside" / "secret.jpg"))
    inside = sorted((root / "images" / "train").iterdir())
    (root / "list.txt").write_text("\n".join([*map(str, inside), named]))
    describe_yolo(root, train="list.txt")
    with pytest.raises(DataError, match=OUTSIDE):
        read_all(open_scenes(root, needs="boxes"))


@pytest.mark.parametrize("fields", [{"path": "..", "train": "outside"}, {"train": "/etc/passwd"}, {"path": "/etc"}])
def test_a_set_of_yolo_lies_in_no_folder_and_no_list_outside(root: Path, fields: dict[str, str]) -> None:
    write_yolo(root, train=2, val=1)
    describe_yolo(root, **fields)
    with pytest.raises(DataError) as raised:
        read_all(open_scenes(root, needs="boxes"))
    assert "secret.jpg" not in str(raised.value)


def describe_yolo(root: Path, **fields: str) -> None:
    path = root / "data.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | fields))


def test_a_link_in_the_place_of_an_image_or_its_objects_is_not_followed_outside(root: Path) -> None:
    write_voc(root, train=8, val=1)  # with each class among those of the training set
    read_all(open_scenes(root, needs="boxes"))
    for folder, name in (("JPEGImages", "train_0001.jpg"), ("Annotations", "train_0001.xml")):
        path = root / folder / name
        content = path.read_bytes()
        path.unlink()
        path.symlink_to(root.parent / "outside" / "secret.jpg")
        with pytest.raises(DataError, match=OUTSIDE):
            read_all(open_scenes(root, needs="boxes"))
        path.unlink()
        path.write_bytes(content)


def test_a_class_of_an_image_folder_is_no_folder_outside(root: Path) -> None:
    for name in ("cat", "dog"):
        (root / name).mkdir()
        for number in range(2):
            Image.new("RGB", (8, 8)).save(root / name / f"{number}.png")
    assert open_image_folder(root, val_fraction=0.5).class_names == ("cat", "dog")
    (root / "eel").symlink_to(root.parent / "outside")
    with pytest.raises(DataError, match=f"eel is not read: .*{OUTSIDE}"):
        open_image_folder(root, val_fraction=0.5)


@pytest.mark.parametrize(
    "read", [lambda path: read_names(path, "label_names"), lambda path: read_images(path, path)], ids=["cifar", "mnist"]
)
def test_the_files_of_known_data_sets_lie_inside_too(root: Path, read: Callable[[Path], object]) -> None:
    (root / "file").symlink_to("/etc/passwd")
    with pytest.raises(DataError, match=OUTSIDE):
        read(root / "file")


def test_a_run_is_told_the_roots_of_its_host_unless_it_is_a_program(tmp_path: Path) -> None:
    settings = Settings(data_roots=f"photos={tmp_path}")
    train = TrainConfig.model_validate({"model": "mlp", "data": str(tmp_path)})
    program = TrainConfig.model_validate({"recipe": "script", "options": {"script": "/a.py"}})
    assert roots.environment(train, settings) == {DATA_WITHIN_VARIABLE: json.dumps([str(tmp_path)])}
    assert roots.environment(program, settings) == {}
    assert roots.environment(train, Settings()) == {}
