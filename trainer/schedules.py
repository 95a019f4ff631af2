"""Schedules: the learning rate of each step, a function of nothing but the config and the step's place in the run."""

import math

from trainer.config import TrainConfig
from trainer.errors import ConfigError

_RISE, _START, _END = 0.3, 1 / 25, 1 / 25 / 1e4
"""One cycle: the share of the steps that rise, and the first and the last learning rate in parts of the highest, as
torch's OneCycleLR has them by default."""


def learning_rate(config: TrainConfig, *, step: int, total_steps: int, steps_per_epoch: int) -> float:
    """Return the learning rate of the step with index `step` (from 0): of nothing else, so resume needs no state.

    The warm-up is linear in steps (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.2), up to the rate
    that the schedule begins with; the schedule then runs over the steps that are left.
    """
    warmup = warmup_steps(config, steps_per_epoch=steps_per_epoch)
    rest = total_steps - warmup
    if step < warmup:
        return _scheduled(config, 0, steps=rest, steps_per_epoch=steps_per_epoch) * (step + 1) / (warmup + 1)
    return _scheduled(config, step - warmup, steps=rest, steps_per_epoch=steps_per_epoch)


def warmup_steps(config: TrainConfig, *, steps_per_epoch: int) -> int:
    """Return the number of steps of the warm-up."""
    return round(config.warmup_epochs * steps_per_epoch)


def refuse_endless_warmup(config: TrainConfig) -> None:
    """Raise ConfigError where the run would end before its warm-up."""
    if config.warmup_epochs > config.epochs:
        raise ConfigError(
            f"warmup_epochs: {config.warmup_epochs:g} epochs of warm-up do not end within epochs={config.epochs}; "
            "shorten the warm-up or raise epochs"
        )


def _scheduled(config: TrainConfig, step: int, *, steps: int, steps_per_epoch: int) -> float:
    """Return the learning rate at the step with index `step` of the `steps` that a schedule runs over."""
    if config.schedule == "step":
        return config.lr * config.step_gamma ** (step // (config.step_epochs * steps_per_epoch))
    if config.schedule == "constant" or steps <= 1:
        return config.lr
    if config.schedule == "linear":
        return config.lr * (1 - step / (steps - 1))
    if config.schedule == "one_cycle":
        return config.lr * _one_cycle(step, steps)
    # Cosine annealing without restarts, to 0 at the last step (Loshchilov and Hutter, 2017, equation 5).
    return config.lr * (1 + math.cos(math.pi * step / (steps - 1))) / 2


def _one_cycle(step: int, steps: int) -> float:
    """Return the factor of the one-cycle policy (Smith and Topin, "Super-Convergence", 2018), with cosine flanks.

    The cycle of momentum that the paper adds is not part of it.
    """
    top = _RISE * steps - 1  # the step with the highest rate; not whole, and below 0 where there are hardly any steps
    if step <= top:
        return _eased(_START, 1, step / top)
    return _eased(1, _END, (step - top) / (steps - 1 - top))


def _eased(begin: float, end: float, part: float) -> float:
    """Return what lies between `begin` and `end` after `part` (0 to 1) of half a cosine wave."""
    return end + (begin - end) * (1 + math.cos(math.pi * part)) / 2
