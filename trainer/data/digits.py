"""The data set `digits`: scikit-learn's 1797 handwritten digits, written once as an image folder of PNG files.

E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998; the 8 by 8
images that scikit-learn ships. A fifth of each digit's images is for validation, always the same ones.
"""

import fcntl
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

_FOLDER = "digits-v1"
"""Changes with what is in it: a folder of an older release must not be taken for this one."""
_VAL_EVERY = 5


def digits_folder(cache: Path) -> Path:
    """Return the image folder, written below `cache` if it is not there yet; many processes may ask at once."""
    folder = cache / _FOLDER
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f".{_FOLDER}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second process waits here and then finds it done
        if not folder.is_dir():
            _write(folder, cache)
    return folder


def _write(folder: Path, cache: Path) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=f".{_FOLDER}.", dir=cache))
    try:
        _write_images(temporary / "images")
        (temporary / "images").rename(folder)  # whole or not at all, also when we are killed here
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_images(folder: Path) -> None:
    from sklearn.datasets import load_digits  # takes a second, and is needed once per machine

    digits = load_digits()
    seen: Counter[int] = Counter()
    for pixels, label in zip(digits.images, digits.target, strict=True):
        digit = int(label)
        split = "val" if seen[digit] % _VAL_EVERY == _VAL_EVERY - 1 else "train"
        path = folder / split / str(digit) / f"{seen[digit]:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.rint(pixels * (255 / 16)).astype(np.uint8)).save(path)
        seen[digit] += 1
