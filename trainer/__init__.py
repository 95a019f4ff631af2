"""Training of one PyTorch model on a list of devices; usable with no service at all."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.api import TrainResult, train
    from trainer.callbacks import Callback
    from trainer.config import TrainConfig
    from trainer.errors import ConfigError, RunFailedError, RunInterruptedError

__all__ = [
    "Callback",
    "ConfigError",
    "RunFailedError",
    "RunInterruptedError",
    "TrainConfig",
    "TrainResult",
    "train",
]

_HOMES = {
    "Callback": "trainer.callbacks",
    "ConfigError": "trainer.errors",
    "RunFailedError": "trainer.errors",
    "RunInterruptedError": "trainer.errors",
    "TrainConfig": "trainer.config",
    "TrainResult": "trainer.api",
    "train": "trainer.api",
}


def __getattr__(name: str) -> Any:
    """Import lazily: `import trainer.config` must not load torch (the API and the worker do it)."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'trainer' has no attribute {name!r}")
