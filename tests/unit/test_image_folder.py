"""Image folders: what is found, what is refused, and what any Pillow image becomes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from trainer.data.digits import digits_folder
from trainer.data.image_folder import ImageDataset, open_image_folder
from trainer.data.images import read_image
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


@pytest.mark.parametrize(
    "mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "YCbCr", "I;16", "I", "F", "HSV", "LAB", "PA"]
)
def test_every_mode_becomes_three_channels_between_0_and_1(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("image.tiff" if mode in ("CMYK", "YCbCr", "F", "LAB", "I") else "image.png")
    image = Image.new(mode, (6, 4), 1 if mode in ("F", "I") else None)
    if mode in ("HSV", "PA"):
        image = image.convert("RGBA" if mode == "PA" else "RGB")  # no file format stores these
    image.save(path)
    pixels = read_image(path)
    assert pixels.shape == (3, 4, 6)
    assert pixels.dtype == torch.float32
    assert 0 <= pixels.min() <= pixels.max() <= 1


def test_a_palette_with_transparency_is_read_without_a_warning(tmp_path: Path) -> None:
    image = Image.new("RGB", (6, 4), (255, 0, 0)).convert("P")
    image.save(tmp_path / "image.png", transparency=bytes([0, 128, 255]))
    assert read_image(tmp_path / "image.png")[0].max() == 1


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    pixels = read_image(tmp_path / "ramp.png")
    assert torch.equal(pixels[0], torch.from_numpy(ramp.astype(np.float32)) / 65535)
    assert len(set(pixels[0].flatten().tolist())) == 256


def test_a_photograph_taken_sideways_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (6, 4))
    exif = image.getexif()
    exif[0x0112] = 6  # orientation: turn by 90 degrees
    image.save(tmp_path / "image.jpg", exif=exif)
    assert read_image(tmp_path / "image.jpg").shape == (3, 6, 4)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp", ".gif", ".bmp"])
def test_a_file_cut_at_a_third_is_an_error_that_names_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut{suffix}"
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    with pytest.raises(DataError, match=f"cut{suffix}"):
        read_image(path)


@pytest.mark.parametrize("content", [b"", b"no image at all", b"\x89PNG\r\n\x1a\n"], ids=["empty", "text", "header"])
def test_a_file_that_is_no_image_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.png"):
        read_image(tmp_path / "x.png")


def test_a_32_bit_image_without_a_known_range_is_refused_rather_than_guessed(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 1_000_000, dtype=np.int32)).save(tmp_path / "deep.tiff")
    with pytest.raises(DataError, match="1000000"):
        read_image(tmp_path / "deep.tiff")


def test_digits_are_written_once_as_an_image_folder(tmp_path: Path) -> None:
    folder = digits_folder(tmp_path)
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")}
    assert digits_folder(tmp_path) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")} == written
    opened = open_image_folder(folder, val_fraction=0.1)
    assert len(opened.train) + len(opened.val) == 1797
    assert opened.class_names == tuple("0123456789")
    image, label = ImageDataset(opened.train, lambda pixels: pixels)[0]
    assert (image.shape, label) == ((3, 8, 8), 0)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]


def test_a_bare_name_that_is_not_known_lists_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"known: digits.*\./digit"):
        data_path("digit")


def test_a_path_is_used_as_given() -> None:
    assert data_path("./somewhere/else") == Path("somewhere/else")
    assert data_path("/data/näher dran") == Path("/data/näher dran")


@pytest.mark.parametrize(("there", "missing"), [("train", "val"), ("val", "train")])
def test_half_a_split_is_no_class_whatever_lies_beside_it(there: str, missing: str, tmp_path: Path) -> None:
    draw_classes(tmp_path / there, dog=3, cat=2)
    draw_classes(tmp_path / "test", dog=1, cat=1)
    with pytest.raises(DataError, match=rf"has a {there} folder and no {missing} folder \(beside it: test\)"):
        open_image_folder(tmp_path, val_fraction=0.1)
