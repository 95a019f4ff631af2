"""Image folders: what is found, what is refused, and what is left when some files cannot be read."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from trainer.data.digits import digits_folder
from trainer.data.image_folder import open_image_folder
from trainer.data.known import data_path
from trainer.errors import ConfigError, DataError


def draw(path: Path, *, value: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 4), (value, value, value)).save(path)
    return path


def draw_classes(root: Path, **images: int) -> Path:
    for name, count in images.items():
        for number in range(count):
            draw(root / name / f"{number}.png")
    return root


def test_the_train_folder_defines_the_classes(tmp_path: Path) -> None:
    draw_classes(tmp_path / "train", dog=3, cat=2)
    draw_classes(tmp_path / "val", dog=1)
    folder = open_image_folder(tmp_path, val_fraction=0.1)
    assert folder.class_names == ("cat", "dog")
    assert [file.label for file in folder.train] == [0, 0, 1, 1, 1]
    assert [file.label for file in folder.val] == [1]


def test_one_folder_is_split_by_class_and_always_alike(tmp_path: Path) -> None:
    draw_classes(tmp_path, cat=20, dog=10)
    folder = open_image_folder(tmp_path, val_fraction=0.2)
    assert folder == open_image_folder(tmp_path, val_fraction=0.2)
    assert [sum(file.label == label for file in folder.val) for label in (0, 1)] == [4, 2]
    assert not {file.path for file in folder.val} & {file.path for file in folder.train}
    assert len(folder.train) == 24


def test_hidden_folders_are_ignored_with_a_warning(tmp_path: Path) -> None:
    draw_classes(tmp_path / "train", cat=2, dog=2)
    draw_classes(tmp_path / "val", cat=1)
    draw(tmp_path / "train" / ".ipynb_checkpoints" / "x.png")
    draw(tmp_path / "train" / "cat" / ".ipynb_checkpoints" / "x.png")
    folder = open_image_folder(tmp_path, val_fraction=0.1)
    assert folder.class_names == ("cat", "dog")
    assert len(folder.train) == 4
    assert any(".ipynb_checkpoints" in warning for warning in folder.warnings)


def test_links_that_lead_nowhere_or_lie_inside_of_a_class_are_told(tmp_path: Path) -> None:
    root = draw_classes(tmp_path / "data", cat=3, dog=3)
    (root / "loop").symlink_to(root / "loop")
    (root / "gone").symlink_to(root / "was here")
    (root / "cat" / "more").symlink_to(draw_classes(tmp_path / "elsewhere", more=2))
    folder = open_image_folder(root, val_fraction=0.4)
    assert folder.class_names == ("cat", "dog")
    assert len(folder.train) + len(folder.val) == 6
    assert folder.warnings == (
        f"data: link {root / 'gone'} leads nowhere and is ignored",
        f"data: link {root / 'loop'} leads nowhere and is ignored",
        f"data: {root / 'cat' / 'more'} is a link to a folder inside of a class, and is ignored",
    )


@pytest.mark.parametrize("name", [".", "cat", "cat/deep"])
def test_a_folder_that_cannot_be_listed_is_named_and_not_left_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = draw_classes(tmp_path / "data", cat=3, dog=3)
    draw(root / "cat" / "deep" / "0.png")
    scandir = os.scandir

    def refuses(folder: Any) -> Any:  # root may list any folder, whatever its mode is
        if Path(folder) == root / name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return scandir(folder)

    monkeypatch.setattr("os.scandir", refuses)
    with pytest.raises(DataError, match=re.escape(f"folder {root / name} cannot be listed: Permission denied")):
        open_image_folder(root, val_fraction=0.4)


def test_nested_folders_any_suffix_case_and_unicode_names_are_found(tmp_path: Path) -> None:
    draw_classes(tmp_path, cat=5, dog=5)
    draw(tmp_path / "cat" / "más" / "кот 😺.PNG")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    folder = open_image_folder(tmp_path, val_fraction=0.2)
    assert len(folder.train) + len(folder.val) == 11


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere does not exist"):
        open_image_folder(tmp_path / "nowhere", val_fraction=0.1)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path} has no class folders"):
        open_image_folder(tmp_path, val_fraction=0.1)


def test_an_empty_class_folder_is_named(tmp_path: Path) -> None:
    draw_classes(tmp_path, cat=3)
    (tmp_path / "dog").mkdir()
    with pytest.raises(DataError, match="dog has no images"):
        open_image_folder(tmp_path, val_fraction=0.1)


def test_one_class_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only one class, 'cat'"):
        open_image_folder(draw_classes(tmp_path, cat=3), val_fraction=0.1)


def test_a_train_folder_alone_is_told_that_val_is_missing(tmp_path: Path) -> None:
    draw_classes(tmp_path / "train", cat=3, dog=3)
    with pytest.raises(DataError, match="val folder"):
        open_image_folder(tmp_path, val_fraction=0.1)


def test_a_class_that_only_validation_has_is_an_error(tmp_path: Path) -> None:
    draw_classes(tmp_path / "train", cat=3, dog=3)
    draw_classes(tmp_path / "val", emu=1)
    with pytest.raises(DataError, match="emu"):
        open_image_folder(tmp_path, val_fraction=0.1)


def test_no_image_for_validation_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no image for validation"):
        open_image_folder(draw_classes(tmp_path, cat=3, dog=3), val_fraction=0.1)
    draw_classes(tmp_path / "split" / "train", cat=3, dog=3)
    (tmp_path / "split" / "val").mkdir()
    with pytest.raises(DataError, match="no image for validation"):
        open_image_folder(tmp_path / "split", val_fraction=0.1)


def test_files_left_out_change_what_the_samples_are_told_by(tmp_path: Path) -> None:
    folder = open_image_folder(draw_classes(tmp_path, cat=20, dog=10), val_fraction=0.2)
    left_out = folder.train[3].path
    kept = folder.without({left_out})
    assert left_out not in {file.path for file in kept.train}
    assert kept.samples.startswith("23 train, 6 val, sha256 ")
    assert kept.samples != folder.samples
    assert kept.val == folder.val


def test_a_class_without_a_readable_image_is_named(tmp_path: Path) -> None:
    folder = open_image_folder(draw_classes(tmp_path, cat=10, dog=10), val_fraction=0.2)
    with pytest.raises(DataError, match="class 'dog' has no image that can be read"):
        folder.without({file.path for file in folder.train if file.label == 1})
    with pytest.raises(DataError, match="images for validation"):
        folder.without({file.path for file in folder.val})


def test_digits_are_written_once_as_an_image_folder(tmp_path: Path) -> None:
    folder = digits_folder(tmp_path)
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")}
    assert digits_folder(tmp_path) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")} == written
    opened = open_image_folder(folder, val_fraction=0.1)
    assert len(opened.train) + len(opened.val) == 1797
    assert opened.class_names == tuple("0123456789")
    with Image.open(opened.train[0].path) as image:
        assert (image.size, opened.train[0].label) == ((8, 8), 0)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]


def test_a_bare_name_that_is_not_known_lists_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"known: digits.*\./digit"):
        data_path("digit")


def test_a_known_set_of_labelled_images_is_no_folder_for_another_recipe() -> None:
    with pytest.raises(ConfigError, match="'synthetic' is a set of labelled images, for the recipe classification"):
        data_path("synthetic")


def test_a_path_is_used_as_given() -> None:
    assert data_path("./somewhere/else") == Path("somewhere/else")
    assert data_path("/data/näher dran") == Path("/data/näher dran")


@pytest.mark.parametrize(("there", "missing"), [("train", "val"), ("val", "train")])
def test_half_a_split_is_no_class_whatever_lies_beside_it(there: str, missing: str, tmp_path: Path) -> None:
    draw_classes(tmp_path / there, dog=3, cat=2)
    draw_classes(tmp_path / "test", dog=1, cat=1)
    with pytest.raises(DataError, match=rf"has a {there} folder and no {missing} folder \(beside it: test\)"):
        open_image_folder(tmp_path, val_fraction=0.1)
