"""The optimizer and the learning rate at each step."""

import math

from torch import nn, optim

from trainer.config import TrainConfig


def build_optimizer(config: TrainConfig, model: nn.Module) -> optim.Optimizer:
    """Return the configured optimizer over every trainable parameter."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if config.optimizer == "sgd":
        return optim.SGD(parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
    return optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay)


def learning_rate(config: TrainConfig, *, step: int, total_steps: int) -> float:
    """Return the learning rate of the step with index `step` (from 0): of nothing else, so resume needs no state.

    Cosine annealing without restarts, to 0 at the last step (Loshchilov and Hutter, 2017, equation 5).
    """
    if config.schedule == "constant" or total_steps <= 1:
        return config.lr
    return config.lr * (1 + math.cos(math.pi * step / (total_steps - 1))) / 2


def set_learning_rate(optimizer: optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = lr
