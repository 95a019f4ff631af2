"""Synchronised BatchNorm: layers that normalise over the batches of all ranks as one process does over their union."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from trainer.errors import ConfigError


def has_batchnorm(model: nn.Module, *, besides: Collection[str] = ()) -> bool:
    """Whether any layer of the model, but for those named, normalises by the batch that it sees."""
    return any(isinstance(layer, _BatchNorm) and name not in besides for name, layer in model.named_modules())


def synchronize_batchnorm(
    model: nn.Module, *, device: torch.device, has_idle_ranks: bool, besides: Collection[str] = ()
) -> nn.Module:
    """Let every BatchNorm layer normalise over all ranks' batches; names, parameters, buffers and state_dict keys stay.

    On CUDA that is torch's own SyncBatchNorm, unless `has_idle_ranks`: an epoch's last batch leaves some rank without a
    sample of its own, and the one that such a rank repeats would count in torch's statistics. There, and on the CPU,
    which torch's refuses, it is ours. A subclass of BatchNorm is converted where its forward is BatchNorm's own.
    LayerNorm, InstanceNorm and all that is no BatchNorm stay as they are, and so does what is named in `besides`, in
    effect: layers that are never in training mode, in which torch's would not wait for the other ranks either.

    Returns the model to use from here on. Raises ConfigError where a layer cannot be converted, naming it.
    """
    named = model.named_modules()
    layers = {name: layer for name, layer in named if isinstance(layer, _BatchNorm) and name not in besides}
    for name, layer in layers.items():
        _refuse_unknown(name, layer)
    if device.type == "cuda" and not has_idle_ranks:
        converted: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]  # torch's own is
        return converted
    for layer in layers.values():
        # The layer itself changes its class, as torch's own parametrizations and lazy layers do: its hooks, and
        # wherever else in the model the same layer stands, stay.
        layer.__class__ = _synchronized(type(layer))
    return model


def count_batch(model: nn.Module, counted: bool) -> None:
    """Say whether this rank's next batch counts in the statistics: False where it only repeats another rank's sample.

    It lasts until it is said otherwise, and has no effect on torch's own SyncBatchNorm.
    """
    for layer in model.modules():
        if isinstance(layer, SynchronizedBatchNorm):
            layer.counted = counted


class SynchronizedBatchNorm(_BatchNorm):
    """BatchNorm (Ioffe and Szegedy, 2015) over the union of all ranks' batches, which may differ in size or be empty.

    In training each rank's forward waits for the others', and so does its backward where the input needs a gradient:
    every rank has to come by every layer. In evaluation, and where there is no process group, it is BatchNorm.

    The input's gradient is that of the sum of all ranks' losses. Weight and bias get the rank's own part of theirs,
    which DistributedDataParallel averages. They cannot be differentiated twice.
    """

    counted: bool = True
    """Whether this rank's input is part of the batch; if not, it is normalised by what the others have."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  (the parameter's name in every torch layer)
        """Take and return a tensor [samples, channels, …]. Raises ValueError for one value per channel in all."""
        if not (self.training and dist.is_initialized()):
            return super().forward(input)
        self._check_input_dim(input)  # type: ignore[no-untyped-call]  # BatchNorm's own
        statistics = _statistics_over_ranks(input.detach(), counted=self.counted)
        if self.track_running_stats:
            self._track(statistics)
        # Half precision has too few digits for the statistics, and batch_norm wants the weights as exact as those.
        dtype = _dtype_of_statistics(input)
        mean, var = statistics.mean.to(dtype), statistics.var.to(dtype)
        share = self.counted / statistics.count
        return functional.batch_norm(
            _ThroughStatistics.apply(input, mean, (var + self.eps).rsqrt(), share),
            mean,
            var,
            _in(dtype, self.weight),
            _in(dtype, self.bias),
            training=False,  # by the statistics that it is given
            eps=self.eps,
        )

    def _track(self, batch: "_Statistics") -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        factor = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        unbiased_var = batch.var * (batch.count / (batch.count - 1))
        self.running_mean.copy_((1 - factor) * self.running_mean + factor * batch.mean)
        self.running_var.copy_((1 - factor) * self.running_var + factor * unbiased_var)


class SynchronizedBatchNorm1d(SynchronizedBatchNorm, nn.BatchNorm1d):
    """Synchronised BatchNorm over inputs of shape [samples, channels] or [samples, channels, length]."""


class SynchronizedBatchNorm2d(SynchronizedBatchNorm, nn.BatchNorm2d):
    """Synchronised BatchNorm over inputs of shape [samples, channels, height, width]."""


class SynchronizedBatchNorm3d(SynchronizedBatchNorm, nn.BatchNorm3d):
    """Synchronised BatchNorm over inputs of shape [samples, channels, depth, height, width]."""


class SynchronizedBatchNormNd(SynchronizedBatchNorm):
    """What stands in for a layer that was torch's SyncBatchNorm before; like it, it takes two dimensions or more."""

    def _check_input_dim(self, input: torch.Tensor) -> None:  # noqa: A002  (torch's name for it)
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")


_SYNCHRONIZED: dict[type[_BatchNorm], type[SynchronizedBatchNorm]] = {
    nn.BatchNorm1d: SynchronizedBatchNorm1d,
    nn.BatchNorm2d: SynchronizedBatchNorm2d,
    nn.BatchNorm3d: SynchronizedBatchNorm3d,
    # Not derived from it: DistributedDataParallel refuses torch's on the CPU.
    nn.SyncBatchNorm: SynchronizedBatchNormNd,
}


def _refuse_unknown(name: str, layer: _BatchNorm) -> None:
    kind = type(layer)
    if isinstance(layer, LazyModuleMixin):
        raise ConfigError(
            f"sync_bn: the layer {name!r} is a {kind.__name__} that has not seen its input yet; give it its number of "
            f"features when you build the model, or set sync_bn to false"
        )
    if kind.forward not in (_BatchNorm.forward, nn.SyncBatchNorm.forward, SynchronizedBatchNorm.forward):
        raise ConfigError(
            f"sync_bn: the layer {name!r} is a {kind.__name__}, whose forward is not BatchNorm's, so that it cannot be "
            f"synchronised; set sync_bn to false, or build the model with torch's BatchNorm"
        )


def _synchronized(kind: type[_BatchNorm]) -> type[_BatchNorm]:
    if issubclass(kind, SynchronizedBatchNorm):
        return kind
    if kind in _SYNCHRONIZED:
        return _SYNCHRONIZED[kind]
    return type(f"Synchronized{kind.__name__}", (SynchronizedBatchNorm, kind), {})  # a user's subclass stays one


@dataclass(frozen=True)
class _Statistics:
    """What the union of all ranks' batches amounts to, in float64, the same to the last bit on every rank."""

    count: torch.Tensor
    """Values per channel: a scalar."""
    mean: torch.Tensor
    """Per channel: shape [channels]."""
    var: torch.Tensor
    """Per channel, biased (divided by `count`): shape [channels]."""


def _statistics_over_ranks(values: torch.Tensor, *, counted: bool) -> _Statistics:
    """Pool the ranks' statistics of tensors of shape [samples, channels, …] (Chan, Golub and LeVeque, 1979, eq. 2.1).

    Unlike sums of squares, the means and squared deviations that are pooled lose no digits where a channel's mean is
    large. Raises ValueError where there are not two values per channel, as BatchNorm does.
    """
    channels = values.shape[1]
    local_count = values.numel() // channels if counted else 0
    # Each rank fills its own row: a sum with zeros is exact, whatever order the ranks are added in.
    rows = values.new_zeros((dist.get_world_size(), 1 + 2 * channels), dtype=torch.float64)
    if local_count:
        exact = values.to(_dtype_of_statistics(values))
        mean, var = torch.batch_norm_update_stats(exact, None, None, 0.0)  # what BatchNorm calls, less the update
        # A large mean is rounded by more than the deviations between ranks can bear.
        rest = (exact - mean.view(_per_channel(values))).mean(_all_but_channels(values))
        rows[dist.get_rank()] = torch.cat([rows.new_tensor([local_count]), mean.double() + rest, var])
    dist.all_reduce(rows)
    counts, means, variances = rows[:, :1], rows[:, 1 : 1 + channels], rows[:, 1 + channels :]
    count = counts.sum()
    # Only where no rank has more than one is it worth the wait for the device to look.
    if local_count <= 1 and count.item() <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {values.size()}, "
            f"and no more on the other ranks"
        )
    mean = (counts * means).sum(0) / count
    var = (counts * (variances + (means - mean).square())).sum(0) / count
    return _Statistics(count, mean, var)


def _dtype_of_statistics(values: torch.Tensor) -> torch.dtype:
    return torch.promote_types(values.dtype, torch.float32)


def _per_channel(values: torch.Tensor) -> list[int]:
    """The shape in which one number for each channel meets `values`."""
    return [1, -1] + [1] * (values.dim() - 2)


def _all_but_channels(values: torch.Tensor) -> list[int]:
    return [0, *range(2, values.dim())]


def _in(dtype: torch.dtype, parameter: torch.Tensor | None) -> torch.Tensor | None:
    return None if parameter is None else parameter.to(dtype)


class _ThroughStatistics(torch.autograd.Function):
    """The identity before a normalisation by given statistics: its backward adds what their gradient brings the input.

    For an input x normalised to x̂, and g the gradient with the statistics held fixed, the whole gradient is
    g - E[g] - x̂·E[g·x̂], with means per channel over the values of all ranks. torch.distributed's own differentiable
    all_reduce gives the same by a longer way; it is deprecated.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        values: torch.Tensor,
        mean: torch.Tensor,
        inverse_deviation: torch.Tensor,
        share: torch.Tensor,
    ) -> torch.Tensor:
        """`share`: the part that one value of this rank has in a mean; 0 where the rank is not counted."""
        ctx.save_for_backward(values, mean, inverse_deviation, share)
        return values.view_as(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        values, mean, inverse_deviation, share = ctx.saved_tensors
        per_channel, all_but_channels = _per_channel(values), _all_but_channels(values)
        exact = gradient.to(mean.dtype)
        normalized = (values - mean.view(per_channel)).mul_(inverse_deviation.view(per_channel))
        sums = torch.stack([exact.sum(all_but_channels), (exact * normalized).sum(all_but_channels)]).double()
        dist.all_reduce(sums)
        of_gradient, of_product = (sums * share).to(mean.dtype).view(2, *per_channel).unbind()
        whole = (exact - of_gradient).addcmul_(normalized, of_product, value=-1)
        return whole.to(values.dtype), None, None, None
