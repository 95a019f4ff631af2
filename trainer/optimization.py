"""Optimization: the optimizer, and what becomes of gradients before it takes them."""

import torch
from torch import nn, optim

from trainer.config import TrainConfig


def build_optimizer(config: TrainConfig, model: nn.Module) -> optim.Optimizer:
    """Return the configured optimizer over every trainable parameter."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if config.optimizer == "sgd":
        return optim.SGD(parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
    return optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay)


def set_learning_rate(optimizer: optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def clip_gradients(optimizer: optim.Optimizer, largest_norm: float) -> torch.Tensor:
    """Scale all gradients down together where their norm is larger; return the norm that they had, a scalar.

    The norm is the 2-norm of all of them as one vector (Pascanu, Mikolov and Bengio, 2013, section 3.2). Gradients have
    to be averaged over the ranks before: then every rank finds the same norm.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return nn.utils.clip_grad_norm_(parameters, largest_norm)
