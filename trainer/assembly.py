"""Assembly: what a run on one rank is made of (data, model, optimizer, loaders), built from its configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import nn, optim
from torch.utils.data import BatchSampler, DataLoader

from trainer.autobatch import resolve_batch
from trainer.averaging import WeightAverage
from trainer.caller import Call, read_call
from trainer.compiling import compile_in_place, refuse_uncompilable
from trainer.config import AUTO_BATCH, TrainConfig
from trainer.cuda_graph import is_recordable, why_eager
from trainer.data.loading import build_loader
from trainer.data.seeded import SeededSamples
from trainer.devices import continued_batch, per_rank_batch
from trainer.errors import ConfigError
from trainer.freezing import freeze, held_batchnorm
from trainer.journal import Record
from trainer.loss_scaling import LossScaling
from trainer.memory_format import batches_in_channels_last, weights_in_channels_last
from trainer.micro_batches import accumulated_batches, micro_batch
from trainer.micro_batches import hint as in_parts
from trainer.normalization import Normalization
from trainer.optimization import build_optimizer
from trainer.precision import refuse_unsupported
from trainer.process_group import ProcessGroup
from trainer.profiling import why_unprofiled
from trainer.recipes.recipe import Recipe, TaskData, open_data, wants_sync_bn
from trainer.recipes.registry import build_recipe
from trainer.run_dir import RunConfig, RunDir
from trainer.sampling import GlobalBatchSampler, ShardSampler
from trainer.schedules import refuse_endless_warmup
from trainer.seeds import seed_weights
from trainer.strategies import hint, refuse_unspawnable
from trainer.sync_batchnorm import has_batchnorm, synchronize_batchnorm
from trainer.weights import begin_with


@dataclass(frozen=True)
class Assembly:
    """The parts of a run on one rank, before its first step."""

    config: TrainConfig
    """With the batch that the run takes, should that have been left to us."""
    recipe: Recipe
    data: TaskData
    model: nn.Module
    """On the rank's device, with BatchNorm synchronized where it is to be; not wrapped."""
    average: WeightAverage | None
    optimizer: optim.Optimizer
    scaling: LossScaling
    sampler: GlobalBatchSampler
    loader: DataLoader[Any]
    val_loader: DataLoader[Any]
    callbacks: tuple[Callable[[Record], None], ...]
    uses_cuda_graph: bool
    warnings: tuple[str, ...]
    """What the user should know before the first step."""

    @property
    def evaluated(self) -> nn.Module:
        """The model that validation measures and that is handed out: the average, where there is one."""
        return self.model if self.average is None else self.average.model


def assemble(
    run_dir: RunDir, run_config: RunConfig, group: ProcessGroup, *, is_continued: bool, batch: int | None
) -> Assembly:
    """Build a run's parts, on every rank alike. `batch` is the global batch of the run that is continued, if any; the
    weights of one that is are yet to be put into the model.

    Raises ConfigError, DeviceError or DataError for what cannot be run.
    """
    call = read_call(run_dir) if run_config.call else Call(model=None, callbacks=())
    config = run_config.train
    split_among = len(run_config.devices) if config.strategy == "dp" else 1
    recipe = build_recipe(config)
    refuse_unspawnable(recipe, run_config, group.environment)
    refuse_endless_warmup(config)
    refuse_unsupported(config, group.device)
    refuse_uncompilable(config, devices=split_among)
    data = open_data(recipe, group)
    model = _model(call, recipe, config, data)
    of_weights = () if is_continued else begin_with(model, config, group, brought=run_config.weights)
    freeze(model, config.freeze)
    model = model.to(group.device)
    if config.channels_last:
        model, data = weights_in_channels_last(model), batches_in_channels_last(data)
    is_distributed = group.store is not None
    without_graph = partial(
        why_eager,
        config,
        group.device,
        is_distributed=is_distributed,
        devices=split_among,
        is_recordable=cache(partial(is_recordable, data, model, config)),
    )
    if config.batch == AUTO_BATCH and batch is not None:
        takers = group.world_size * split_among
        among = "devices" if split_among > 1 else "ranks"
        config = config.model_copy(update={"batch": continued_batch(batch, takers, among=among)})
    elif config.batch == AUTO_BATCH:
        measured = resolve_batch(
            config,
            group=group,
            recipe=recipe,
            model=model,
            data=data,
            split_among=split_among,
            is_graphed=config.cuda_graph and without_graph(accumulate=1) is None,
        )
        config = config.model_copy(update={"batch": measured})
    part = micro_batch(config.batch, group.world_size * split_among, parts=run_config.micro_batches)
    share = per_rank_batch(part, group.world_size)
    held = held_batchnorm(model, config.freeze)
    is_normalized = has_batchnorm(model, besides=held)
    is_synchronized = group.world_size > 1 and wants_sync_bn(recipe, config)
    normalization = Normalization.of(run_config, is_synchronized=is_synchronized) if is_normalized else None
    sampler = GlobalBatchSampler(
        data.train,
        batch=config.batch,
        parts=run_config.micro_batches,
        accumulate=accumulated_batches(config),
        rank=group.rank,
        world_size=group.world_size,
        seed=config.seed,
        leaves_out=normalization.leaves_out if normalization is not None else None,
    )
    if normalization is not None:
        normalization.refuse_too_few(sampler)
    if is_normalized and is_synchronized:
        idle = sampler.has_idle_ranks
        model = synchronize_batchnorm(model, device=group.device, has_idle_ranks=idle, besides=held)
    average = WeightAverage(model, decay=config.ema) if config.ema is not None else None
    if config.compile:
        compile_in_place(model, *([average.model] if average is not None else []), device=group.device)
    eager = without_graph(accumulate=sampler.accumulate * run_config.micro_batches)
    options: dict[str, Any] = {
        "num_workers": config.num_workers,
        "prefetch": config.prefetch,
        "device": group.device,
        "collate": data.collate,
    }
    val_sampler = ShardSampler(data.val, rank=group.rank, world_size=group.world_size)
    return Assembly(
        config=config,
        recipe=recipe,
        data=data,
        model=model,
        average=average,
        optimizer=build_optimizer(config, model),
        scaling=LossScaling(config, group.device),
        sampler=sampler,
        loader=build_loader(SeededSamples(data.train, seed=config.seed), sampler, **options),
        # The model alone validates, so of the devices that "dp" splits a batch among only the first.
        val_loader=build_loader(data.val, BatchSampler(val_sampler, share // split_among, drop_last=False), **options),
        callbacks=call.callbacks,
        uses_cuda_graph=config.cuda_graph and eager is None,
        warnings=(
            *data.warnings,
            *of_weights,
            *([text] if (text := hint(run_config)) else []),
            *([text] if (text := in_parts(config.batch, run_config.micro_batches, is_normalized)) else []),
            *([eager] if eager is not None else []),
            *([text] if (text := why_unprofiled(config, group.world_size)) else []),
            *(normalization.warnings(sampler) if normalization is not None else []),
        ),
    )


def _model(call: Call, recipe: Recipe, config: TrainConfig, data: TaskData) -> nn.Module:
    if call.model is not None:
        _refuse_untrainable(call.model, config)
        recipe.check_model(call.model, data)
        return call.model
    seed_weights(config.seed)
    return recipe.build_model(data)


def _refuse_untrainable(model: nn.Module, config: TrainConfig) -> None:
    """Raise ConfigError for a model without weights to train, or whose state is more than a checkpoint holds."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"model: {config.model} has no parameter that requires a gradient, so nothing to train")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise ConfigError(
                f"model: {name} of {config.model} has no shape before the first forward pass; call the model once on "
                "an example before you hand it over, or use a layer that is not lazy"
            )
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise ConfigError(
                f"model: {name} in the state of {config.model} is a {type(value).__name__}, and checkpoints hold "
                "tensors only; register it as a buffer, or leave get_extra_state out"
            )
