"""Image files: what becomes of any that Pillow reads, and that each broken one is named."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, features

from trainer.data.images import check_ends, check_size, image_size, read_image
from trainer.errors import DataError


def noise(height: int = 64, width: int = 64) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def marked(path: Path, *, orientation: int) -> Path:
    """Save an image that is black but for its upper left quarter, as a camera held some way would."""
    pixels = np.zeros((32, 32, 3), dtype=np.uint8)
    pixels[:16, :16] = 255
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(path, exif=exif)
    return path


MODES = ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "YCbCr", "I;16", "I", "F", "HSV", "LAB", "PA", "RGBX"]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_becomes_three_channels_of_bytes_with_its_brightness(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("image.tiff" if mode in ("CMYK", "YCbCr", "F", "LAB", "I", "RGBX") else "image.png")
    half = {"1": 1, "F": 0.5, "I": 32768, "I;16": 32768, "P": 128, "L": 128}
    image = Image.new(mode, (6, 4), half[mode]) if mode in half else Image.new("RGB", (6, 4), (128, 128, 128))
    if mode not in (*half, "HSV", "PA"):
        image = image.convert(mode)
    elif mode in ("HSV", "PA"):
        image = image.convert("RGBA" if mode == "PA" else "RGB")  # no file format stores these
    if mode == "P":
        image.putpalette([value for value in range(256) for _ in range(3)])
    image.save(path)
    pixels = read_image(path, size=8)
    assert (pixels.shape, pixels.dtype) == ((3, 8, 8), torch.uint8)
    assert (pixels.int() - (255 if mode == "1" else 128)).abs().max() <= 1
    assert pixels.is_contiguous()


def test_a_palette_with_transparency_is_read_without_a_warning(tmp_path: Path) -> None:
    image = Image.new("RGB", (6, 4), (255, 0, 0)).convert("P")
    image.save(tmp_path / "image.png", transparency=bytes([0, 128, 255]))
    assert read_image(tmp_path / "image.png", size=4)[0].max() == 255


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".pgm"])
def test_sixteen_bits_are_scaled_and_not_clipped(suffix: str, tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / f"ramp{suffix}")
    pixels = read_image(tmp_path / f"ramp{suffix}", size=16)
    assert pixels.flatten(1).tolist() == [list(range(256))] * 3


def test_twelve_bits_are_scaled_to_all_of_the_range(tmp_path: Path) -> None:
    (tmp_path / "x.tiff").write_bytes(twelve_bit_tiff([0, 1024, 2048, 4095]))
    assert read_image(tmp_path / "x.tiff", size=2)[0].flatten().tolist() == [0, 64, 128, 255]


def twelve_bit_tiff(values: list[int]) -> bytes:
    """Write two rows of two grey values, each pair in three bytes, as TIFF 6.0 lays them out."""
    rows = [values[0] << 12 | values[1], values[2] << 12 | values[3]]
    pixels = b"".join(row.to_bytes(3, "big") for row in rows)
    tags = [(256, 2), (257, 2), (258, 12), (259, 1), (262, 1), (273, 8), (277, 1), (278, 2), (279, len(pixels))]
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags)
    return struct.pack("<2sHI", b"II", 42, 14) + pixels + struct.pack("<H", len(tags)) + entries + bytes(4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp"])
def test_a_photograph_is_turned_upright(suffix: str, orientation: int, tmp_path: Path) -> None:
    """EXIF 2.3: 1 is upright, 3 upside down, 6 and 8 on a side, the others mirrored as well."""
    pixels = read_image(marked(tmp_path / f"image{suffix}", orientation=orientation), size=32)[0]
    corner = {1: (0, 0), 2: (0, 31), 3: (31, 31), 4: (31, 0), 5: (0, 0), 6: (0, 31), 7: (31, 31), 8: (31, 0)}
    bright = [(row, column) for row in (0, 31) for column in (0, 31) if pixels[row, column] > 128]
    assert bright == [corner[orientation]]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp"])
def test_the_size_of_a_photograph_is_that_of_the_upright_image(suffix: str, tmp_path: Path) -> None:
    image, path = Image.new("RGB", (6, 4)), tmp_path / f"image{suffix}"
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(path, exif=exif)
    assert image_size(path) == (4, 6)
    check_size(path, (6, 4))
    with pytest.raises(DataError, match=r"4 by 6 pixels, and its annotations are of 6 by 4, .* EXIF"):
        check_size(path, (4, 6))


def test_a_large_jpeg_decoded_small_is_as_near_to_the_original_as_one_decoded_whole(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    blots = [noise(480 // scale, 640 // scale).resize((640, 480), Image.Resampling.BICUBIC) for scale in (80, 16, 4)]
    pixels = sum(np.asarray(blot, dtype=float) for blot in blots) / 3 + random.normal(0, 3, (480, 640, 3))
    original = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    original.save(tmp_path / "x.jpg", quality=90)

    def resized(image: Image.Image) -> np.ndarray:
        return np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR), dtype=float)

    with Image.open(tmp_path / "x.jpg") as image:
        whole = np.square(resized(image) - resized(original)).mean()
    small = read_image(tmp_path / "x.jpg", size=224).permute(1, 2, 0).numpy()
    assert np.square(small - resized(original)).mean() < 1.1 * whole


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp", ".gif", ".bmp"])
def test_a_file_cut_at_a_third_is_an_error_that_names_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut{suffix}"
    noise().save(path)
    check_ends(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    for look in (lambda: read_image(path, size=32), lambda: check_ends(path)):
        with pytest.raises(DataError, match=f"cut{suffix}"):
            look()


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow reads no AVIF")
def test_a_damaged_avif_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "damaged.avif"
    noise().save(path)
    head, _, pixels = path.read_bytes().partition(b"mdat")
    path.write_bytes(head + b"mdat" + bytes(len(pixels)))
    for read in (check_ends, lambda broken: read_image(broken, size=8)):
        with pytest.raises(DataError, match=r"damaged\.avif: not a readable image \(RuntimeError: "):
            read(path)


def test_a_jpeg_with_more_behind_its_end_is_whole(tmp_path: Path) -> None:
    noise().save(tmp_path / "x.jpg")
    with (tmp_path / "x.jpg").open("ab") as file:
        file.write(bytes(16))
    check_ends(tmp_path / "x.jpg")


@pytest.mark.parametrize("content", [b"", b"no image at all", b"\x89PNG\r\n\x1a\n"], ids=["empty", "text", "header"])
def test_a_file_that_is_no_image_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.png"):
        read_image(tmp_path / "x.png", size=8)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_a_32_bit_image_without_a_known_range_is_refused_rather_than_guessed(mode: str, tmp_path: Path) -> None:
    values = np.full((4, 4), 1_000_000, dtype=np.int32 if mode == "I" else np.float32)
    Image.fromarray(values).save(tmp_path / "deep.tiff")
    with pytest.raises(DataError, match="1000000"):
        read_image(tmp_path / "deep.tiff", size=4)


def test_a_value_that_is_no_number_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0.5, np.nan]], dtype=np.float32)).save(tmp_path / "x.tiff")
    with pytest.raises(DataError, match="nan"):
        read_image(tmp_path / "x.tiff", size=4)


def test_what_is_no_regular_file_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "device.png").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "device"):
        with pytest.raises(DataError, match=rf"{name}\.png"):
            read_image(tmp_path / f"{name}.png", size=4)


@pytest.mark.parametrize("name", ["кот 😺.png", "e\u0301té.png", b"\xff\xfe.png"], ids=["emoji", "combining", "bytes"])
def test_any_path_is_read_and_can_be_told(name: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    noise().save(path)
    assert read_image(path, size=4).shape == (3, 4, 4)
    path.write_bytes(b"")
    with pytest.raises(DataError) as error:
        read_image(path, size=4)
    assert str(tmp_path) in str(error.value)
    str(error.value).encode()
