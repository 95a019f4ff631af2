"""Learning-rate hints: what is usual for a batch, by the scaling rules of the literature."""

from math import sqrt

from trainer.config import TrainConfig

_SGD_LR, _SGD_BATCH = 0.1, 256
"""Goyal et al., Accurate, Large Minibatch SGD, 2017: 0.1 for 256 samples with momentum 0.9, and in proportion."""
_ADAMW_LR, _ADAMW_BATCH = 1e-3, 1024
"""Touvron et al., DeiT, 2021: 1e-3 for 1024 samples."""
_WARMUP_EPOCHS = 5
"""Goyal et al.: the learning rate rises over the first five epochs."""
_FAR = 3.0
"""Times that a learning rate may be off the usual one before it is worth a word."""


def usual_learning_rate(optimizer: str, *, samples: int) -> float:
    """Return the learning rate that is usual for so many samples in a step.

    For SGD it grows with the batch (Goyal et al., 2017), for AdamW with its square root (Malladi et al., On the SDEs
    and Scaling Rules for Adaptive Gradient Algorithms, 2022).
    """
    if optimizer == "adamw":
        return _ADAMW_LR * sqrt(samples / _ADAMW_BATCH)
    return _SGD_LR * samples / _SGD_BATCH


def hints(config: TrainConfig, *, samples: int) -> tuple[str, ...]:
    """Return what is to be said of a config's learning rate, with so many samples in a step."""
    usual = usual_learning_rate(config.optimizer, samples=samples)
    if config.optimizer == "adamw":
        rule = f"adamw, {_ADAMW_LR:g} for {_ADAMW_BATCH} samples and with the square root of the batch"
    else:
        rule = f"sgd, {_SGD_LR:g} for {_SGD_BATCH} samples and in proportion (Goyal et al., 2017)"
    found = [f"lr {config.lr:g}; usual for {samples} samples a step is {usual:.2g} ({rule})"]
    ratio = config.lr / usual
    if not 1 / _FAR <= ratio <= _FAR:
        more = f"{ratio:.2g} times" if ratio > 1 else f"1/{1 / ratio:.2g} of"
        found.append(f"yours is {more} that: fine where a sweep has found it, else try {usual:.2g}")
    is_large = samples > (_ADAMW_BATCH if config.optimizer == "adamw" else _SGD_BATCH)
    if is_large and config.warmup_epochs == 0 and config.schedule != "one_cycle":
        found.append(
            f"a step of so many samples wants a warm-up: warmup_epochs: {min(_WARMUP_EPOCHS, config.epochs - 1)}"
            if config.epochs > 1
            else "a step of so many samples wants a warm-up, and more than one epoch"
        )
    return tuple(found)
