"""Training of one PyTorch model on a list of devices; usable with no service at all."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.api import TrainResult as TrainResult
    from trainer.api import train as train
    from trainer.callbacks import Callback as Callback
    from trainer.config import TrainConfig as TrainConfig

_HOMES = {
    "train": "trainer.api",
    "TrainResult": "trainer.api",
    "Callback": "trainer.callbacks",
    "TrainConfig": "trainer.config",
}


def __getattr__(name: str) -> Any:
    """Import lazily: `import trainer.config` must not load torch (the API and the worker do it)."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'trainer' has no attribute {name!r}")
