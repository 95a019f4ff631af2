"""Names that users type: which known one a mistyped name may have meant, and how to tell apart those that are alike."""

from collections.abc import Sequence
from difflib import get_close_matches

_CLOSE = 0.6
_ELSEWHERE = {
    "arch": "model",
    "batch_size": "batch",
    "bs": "batch",
    "dataset": "data",
    "devices": "device",
    "epoch": "epochs",
    "gpus": "device",
    "img_size": "image_size",
    "imgsz": "image_size",
    "learning_rate": "lr",
    "lr0": "lr",
    "nproc": "nproc_per_node",
    "optim": "optimizer",
    "wd": "weight_decay",
    "workers": "num_workers",
}
"""What other programs call our options."""


def closest(name: str, known: Sequence[str]) -> str | None:
    """Return the one known name that a mistyped one is closest to, or None where none is close."""
    return next(iter(get_close_matches(name.lower(), known, n=1, cutoff=_CLOSE)), None)


def called_elsewhere(name: str) -> str | None:
    """Return what an option is called here that has this name in other programs, or None."""
    return _ELSEWHERE.get(name.lower())


def meant(name: str, options: Sequence[str]) -> str | None:
    """Return which option an unknown name may stand for: what others call so, or what is written alike."""
    return called_elsewhere(name) or closest(name, options)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error message about an unknown name: the nearest known ones, or where to find all."""
    close = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else "`python -m trainer catalog` lists what there is"


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that are all different: a number follows each that has come before."""
    given, found = set(names), dict[str, None]()
    for name in names:
        told, number = name, 1
        while told in found or (number > 1 and told in given):
            number += 1
            told = f"{name} ({number})"
        found[told] = None
    return tuple(found)
