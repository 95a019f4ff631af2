"""Micro-batches: the parts that a global batch is computed in where the whole does not fit into a device's memory.

A batch of B samples in m parts is m batches of B/m whose gradients are added up: the same samples in the same step,
each with the same weight. Never imports torch.
"""

import re

from trainer.config import AUTO_BATCH, SCRIPT, TrainConfig
from trainer.error_report import ErrorReport
from trainer.errors import Cause, ConfigError
from trainer.run_dir import RunConfig

TOO_FEW_FOR_BATCHNORM = re.compile(r"Expected more than 1 value per channel when training")
"""What a BatchNorm layer, torch's or ours, says of a single value per channel."""
# What torch raises for CUDA; MPS and drivers raise a plain RuntimeError that says so.
_EXCEPTION = "torch.OutOfMemoryError"
_MESSAGE = re.compile(r"\b(CUDA|HIP|XPU|MPS)\b.* out of memory", re.IGNORECASE)


def micro_batch(batch: int, takers: int, *, parts: int) -> int:
    """Return the samples of each part of a global batch, over all `takers` (devices) together.

    Raises ConfigError where a taker's share does not divide into so many.
    """
    share = batch // takers
    if share % parts:
        raise ConfigError(
            f"micro_batches: {share} samples, a device's share of batch {batch}, do not divide into {parts} parts"
        )
    return batch // parts


def more_parts(share: int, parts: int) -> int | None:
    """Return the number of parts after `parts` for a device's share of a batch, or None where each is one sample.

    A part is halved; one that is odd is cut to the next smaller divisor of the share.
    """
    size = share // parts
    if size == 1:
        return None
    smaller = size // 2 if size % 2 == 0 else next(each for each in range(size - 1, 0, -1) if share % each == 0)
    return share // smaller


def accumulated_batches(config: TrainConfig) -> int:
    """Return how many global batches one optimizer step takes."""
    return max(1, round(config.nbs / config.batch)) if config.nbs is not None else 1


def devices_of(config: RunConfig) -> int:
    """Return the number of devices, over all nodes, that a global batch divides among."""
    return config.nnodes * len(config.devices)


def hint(batch: int, parts: int, is_normalized: bool) -> str | None:
    """Return what the user should know about parts of a batch, if there are any. `is_normalized`: by BatchNorm."""
    if parts == 1:
        return None
    normalized = "; BatchNorm normalises over a part, no longer over the batch" if is_normalized else ""
    return f"each batch of {batch} is computed in {parts} parts of {batch // parts}, to spare memory{normalized}"


def is_out_of_device_memory(error: ErrorReport) -> bool:
    """Return whether a device's memory ran out: not the host's, nor /dev/shm, which smaller parts need as much of."""
    return error.cause is Cause.OUT_OF_MEMORY and (
        error.exception == _EXCEPTION or _MESSAGE.search(error.message) is not None
    )


def with_way_out(error: ErrorReport, config: RunConfig, *, is_relaunched: bool) -> ErrorReport:
    """Return the report with what the user can do about a device that is too small, where we do nothing about it.

    BatchNorm's own error on parts of a batch stands for such a device too. `is_relaunched`: whoever started the ranks
    starts them anew on smaller parts, as long as there are any.
    """
    batch = config.train.batch
    if config.train.recipe == SCRIPT or batch == AUTO_BATCH:
        return error
    if config.micro_batches > 1 and TOO_FEW_FOR_BATCHNORM.search(error.message):
        return _too_few_that_fit(error, config)
    if not is_out_of_device_memory(error):
        return error
    parts = more_parts(batch // devices_of(config), config.micro_batches)
    if parts is None:
        way = "each device has one sample at a time: take a smaller model or image_size, or amp: bf16"
    elif is_relaunched:
        return error  # not even the model fits
    else:
        nominal = batch * accumulated_batches(config.train)
        way = f"to take the same steps with less memory, begin anew with batch: {batch // parts} and nbs: {nominal}"
    return error.model_copy(update={"message": f"{error.message.rstrip('.')}; {way}"})


def _too_few_that_fit(error: ErrorReport, config: RunConfig) -> ErrorReport:
    """Return a report of BatchNorm's as what it is on parts: more samples at once, which it asks for, do not fit."""
    size = config.train.batch // devices_of(config) // config.micro_batches
    samples = f"{size} {'sample' if size == 1 else 'samples'}"
    others = ", or sync_bn: true" if config.train.sync_bn is False and config.world_size > 1 else ""
    message = (
        f"out of a device's memory with more than {samples} at a time, and so few give BatchNorm a single value per "
        f"channel, which it cannot normalise by; take a smaller model or image_size, or amp: bf16{others}"
    )
    return error.model_copy(update={"cause": Cause.OUT_OF_MEMORY, "message": message})
