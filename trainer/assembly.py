"""Assembly: what a run on one rank is made of (data, model, optimizer, loaders), built from its configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn, optim
from torch.utils.data import DataLoader

from trainer.autobatch import resolve_batch
from trainer.averaging import WeightAverage
from trainer.caller import Call, read_call
from trainer.config import AUTO_BATCH, TrainConfig
from trainer.data.loading import build_loader
from trainer.data.seeded import SeededSamples
from trainer.devices import per_rank_batch
from trainer.errors import ConfigError
from trainer.journal import Record
from trainer.optimization import build_optimizer
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe, TaskData
from trainer.recipes.registry import recipe_named
from trainer.run_dir import RunConfig, RunDir
from trainer.sampling import GlobalBatchSampler, ShardSampler
from trainer.seeds import seed_weights
from trainer.strategies import hint, refuse_unspawnable
from trainer.sync_batchnorm import has_batchnorm, synchronize_batchnorm

SMALL_SHARE = 16
"""Samples on a rank below which BatchNorm's own statistics of them are worth a warning."""


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
    sampler: GlobalBatchSampler
    loader: DataLoader[Any]
    val_loader: DataLoader[Any]
    callbacks: tuple[Callable[[Record], None], ...]
    warnings: tuple[str, ...]
    """What the user should know before the first step."""

    @property
    def evaluated(self) -> nn.Module:
        """The model that validation measures and that is handed out: the average, where there is one."""
        return self.model if self.average is None else self.average.model


def assemble(run_dir: RunDir, run_config: RunConfig, group: ProcessGroup, *, batch: int | None) -> Assembly:
    """Build a run's parts, on every rank alike. `batch` is the global batch of the run that is continued, if any.

    Raises ConfigError, DeviceError or DataError for what cannot be run.
    """
    call = read_call(run_dir) if run_config.call else Call(model=None, callbacks=())
    config = run_config.train
    recipe = recipe_named(config.recipe)
    refuse_unspawnable(recipe, run_config, group.environment)
    data = recipe.build_data(config)
    model = _model(call, recipe, config, data).to(group.device)
    if config.batch == AUTO_BATCH:
        resolved = batch or resolve_batch(
            config,
            group=group,
            recipe=recipe,
            model=model,
            train_data=data.train,
            split_among=len(run_config.devices) if config.strategy == "dp" else 1,
        )
        config = config.model_copy(update={"batch": resolved})
    share = per_rank_batch(config.batch, group.world_size)
    is_normalized = has_batchnorm(model)
    is_synchronized = group.world_size > 1 and _wants_sync_bn(config, recipe)
    groups = 1 if is_synchronized else group.world_size  # of ranks that normalise by themselves
    sampler = GlobalBatchSampler(
        data.train,
        batch=config.batch,
        accumulate=accumulated_batches(config),
        rank=group.rank,
        world_size=group.world_size,
        seed=config.seed,
        smallest_last=2 * groups if is_normalized else 0,
    )
    if is_normalized:
        _refuse_single_samples(sampler, groups)
    if is_normalized and is_synchronized:
        model = synchronize_batchnorm(model, device=group.device, has_idle_ranks=sampler.has_idle_ranks)
    options: dict[str, Any] = {"batch": share, "num_workers": config.num_workers, "device": group.device}
    val_sampler = ShardSampler(data.val, rank=group.rank, world_size=group.world_size)
    return Assembly(
        config=config,
        recipe=recipe,
        data=data,
        model=model,
        average=WeightAverage(model, decay=config.ema) if config.ema is not None else None,
        optimizer=build_optimizer(config, model),
        sampler=sampler,
        loader=build_loader(SeededSamples(data.train, seed=config.seed), sampler, **options),
        val_loader=build_loader(data.val, val_sampler, **options),
        callbacks=call.callbacks,
        warnings=(
            *data.warnings,
            *([text] if (text := hint(run_config)) else []),
            *(_batchnorm_warnings(sampler, share=share, groups=groups) if is_normalized else []),
        ),
    )


def accumulated_batches(config: TrainConfig) -> int:
    """Return how many global batches one optimizer step takes."""
    return max(1, round(config.nbs / config.batch)) if config.nbs is not None else 1


def _model(call: Call, recipe: Recipe, config: TrainConfig, data: TaskData) -> nn.Module:
    if call.model is not None:
        recipe.check_model(call.model, config, data)
        return call.model
    seed_weights(config.seed)
    return recipe.build_model(config, data)


def _wants_sync_bn(config: TrainConfig, recipe: Recipe) -> bool:
    return recipe.sync_bn_default if config.sync_bn is None else config.sync_bn


def _refuse_single_samples(sampler: GlobalBatchSampler, groups: int) -> None:
    """Refuse a data set whose only batch gives BatchNorm a single sample to normalise by."""
    if sampler.samples < 2 * groups:
        ways = "more images" if groups == 1 else f"sync_bn: true, fewer ranks, or {2 * groups} images"
        raise ConfigError(
            f"data: {sampler.samples} training images among {groups} {'rank' if groups == 1 else 'ranks'} leave one "
            f"with fewer than 2, too few for BatchNorm to normalise by; use {ways}"
        )


def _batchnorm_warnings(sampler: GlobalBatchSampler, *, share: int, groups: int) -> list[str]:
    warnings = []
    if sampler.dropped_samples:
        among = "of the last batch" if groups == 1 else f"among {groups} ranks"
        warnings.append(
            f"the last {sampler.dropped_samples} of each epoch's samples are left out: {among} they are fewer than "
            "BatchNorm needs, 2 to normalise by"
        )
    if groups > 1 and share < SMALL_SHARE:
        warnings.append(
            f"sync_bn is off, and each rank's BatchNorm normalises by its own {share} samples only: below "
            f"{SMALL_SHARE} that is noisy, and not what one rank would train; sync_bn: true normalises over all ranks"
        )
    return warnings
