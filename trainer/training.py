"""Training: one rank's walk through the epochs. Every rank runs this; rank 0 alone writes journal and checkpoints."""

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from trainer.checkpoints import Checkpoint, CheckpointFolder, load_checkpoint, restore
from trainer.data.loading import build_loader, on_device
from trainer.environment import RankEnvironment
from trainer.errors import RunInterruptedError
from trainer.evaluation import evaluate
from trainer.journal import Completed, EpochEnd, Log, Metrics, Started
from trainer.loss_watch import LossWatch
from trainer.optimization import build_optimizer, learning_rate, set_learning_rate
from trainer.process_group import ProcessGroup, device_label
from trainer.recipes.registry import recipe_named
from trainer.reporting import ProgressFile, metric_fields, open_journal, warn
from trainer.resuming import refuse_other_run, rehearse, resume_path
from trainer.run_dir import RunConfig, RunDir
from trainer.sampling import GlobalBatchSampler, ShardSampler
from trainer.seeds import seed_step, seed_weights
from trainer.stopping import StopAgreement

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store


def run(
    run_dir: RunDir,
    config: RunConfig,
    *,
    environment: RankEnvironment,
    store: "Store | None",
    progress: ProgressFile,
) -> None:
    """Train as one rank, to the completion record. Raises RunInterruptedError where the ranks were asked to stop."""
    group = ProcessGroup.join(
        environment,
        store,
        device=config.devices[environment.local_rank],
        simulated=config.simulated,
        timeout_s=config.train.timeout_s,
    )
    Training(run_dir, config, group, progress).run()
    group.wait_for_all()  # nobody tears the group down while another still needs it
    group.leave()


class Training:
    """The state of a run on one rank, and the loop over it."""

    def __init__(self, run_dir: RunDir, run_config: RunConfig, group: ProcessGroup, progress: ProgressFile) -> None:
        self.run_config, self.config, self.group, self.progress = run_config, run_config.train, group, progress
        config = self.config
        # Rank 0 says what to continue from before it writes a word: the others might read its new records.
        self.resume = group.share("resume", resume_path(run_dir, run_config) if group.rank == 0 else "")
        self.journal = open_journal(run_dir, rank=group.rank)
        self.recipe = recipe_named(config.recipe)
        self.data = self.recipe.build_data(config)
        seed_weights(config.seed)
        self.model = self.recipe.build_model(config, self.data).to(group.device)
        self.sampler = GlobalBatchSampler(
            self.data.train,
            batch=config.batch,
            rank=group.rank,
            world_size=group.world_size,
            seed=config.seed,
            # BatchNorm needs two samples to normalise by; a last batch that leaves a rank fewer is left out.
            smallest_share=2 if any(isinstance(layer, _BatchNorm) for layer in self.model.modules()) else 0,
        )
        self.batch_per_rank = config.batch // group.world_size
        loader_options: dict[str, Any] = {
            "batch": self.batch_per_rank,
            "num_workers": config.num_workers,
            "device": group.device,
        }
        val_sampler = ShardSampler(self.data.val, rank=group.rank, world_size=group.world_size)
        self.loader = build_loader(self.data.train, self.sampler, **loader_options)
        self.val_loader = build_loader(self.data.val, val_sampler, **loader_options)
        self.optimizer = build_optimizer(config, self.model)
        self.folder = CheckpointFolder(run_dir, self.journal) if group.rank == 0 else None
        self.loss_watch = LossWatch(group.device, rank=group.rank)
        self.stop = StopAgreement(group.store, rank=group.rank, lead=self.loss_watch.lead)
        self.epoch = self.step_in_epoch = self.step = 0
        """Epochs completed, steps taken in the epoch after those, and steps taken in all."""
        self.values: dict[str, float] = {}
        """Validation metrics of the last epoch."""
        self.rehearsal_is_due = False

    def run(self) -> None:
        """Train the epochs that are left, evaluating and saving after each."""
        if self.resume:
            self._continue_from(Path(self.resume))
        self.replica = self.group.distributed(self.model)
        self._begin()
        while self.epoch < self.config.epochs:
            begun_s = time.monotonic()
            self._train_epoch()
            self._evaluate()
            self._save()
            self._end_epoch(begun_s)
        self._complete()

    @property
    def steps_per_epoch(self) -> int:
        return self.sampler.steps_per_epoch

    @property
    def total_steps(self) -> int:
        return self.steps_per_epoch * self.config.epochs

    def _continue_from(self, path: Path) -> None:
        checkpoint = load_checkpoint(path, verify_digest=self.group.rank == 0)
        refuse_other_run(path, checkpoint, self.config, self.data, steps_per_epoch=self.steps_per_epoch)
        restore(path, checkpoint, model=self.model, optimizer=self.optimizer)
        self.epoch, self.step_in_epoch, self.step = checkpoint.epoch, checkpoint.step_in_epoch, checkpoint.step
        # Of two numbers the sum is the same in any order, and DDP's buckets are of no consequence.
        self.rehearsal_is_due = self.step > 0 and self.group.world_size > 2
        self.values = checkpoint.values
        if self.folder is not None:
            self.folder.continue_from(path, checkpoint)

    def _begin(self) -> None:
        self.stop.listen()
        self.group.wait_for_all()  # until here SIGTERM ends a rank at once; past it, every rank stops in step
        self.journal.append(
            Started,
            world_size=self.group.world_size,
            devices=tuple(device_label(name, simulated=self.run_config.simulated) for name in self.run_config.devices),
            batch_per_rank=self.batch_per_rank,
            epochs=self.config.epochs,
            steps_per_epoch=self.steps_per_epoch,
            total_steps=self.total_steps,
            parameters=sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad),
            resumed_step=self.step if self.resume else None,
        )
        for message in self.data.warnings:
            warn(self.journal, message)
        if self.sampler.dropped_samples:
            warn(
                self.journal,
                f"the last {self.sampler.dropped_samples} samples of each epoch's order are left out: they would leave "
                f"one of {self.group.world_size} ranks fewer than 2, too few for BatchNorm",
            )

    def _train_epoch(self) -> None:
        self.sampler.start_at(self.epoch, self.step_in_epoch)
        self.model.train()
        self.meter = _Throughput()
        for batch in self.loader:
            self.loss_watch.before(self.step + 1)
            if self.stop.stops_before(self.step + 1):
                self._interrupt()
            self._train_step(batch)
            every = self.config.save_every
            if every and self.step % every == 0 and self.step_in_epoch < self.steps_per_epoch:
                self._save()

    def _train_step(self, batch: Any) -> None:
        config, step_in_epoch = self.config, self.step_in_epoch
        batch = on_device(batch, self.group.device)
        if self.rehearsal_is_due:
            rehearse(self.model, lambda: self._loss(batch))
            self.rehearsal_is_due = False
        seed_step(config.seed, rank=self.group.rank, epoch=self.epoch, step=self.step)
        lr = learning_rate(config, step=self.step, total_steps=self.total_steps)
        set_learning_rate(self.optimizer, lr)
        loss = self._loss(batch)
        self.loss_watch.loss(self.step + 1, loss)
        weight = self.sampler.weight(step_in_epoch)
        self.optimizer.zero_grad(set_to_none=True)
        (loss if weight == 1 else loss * weight).backward()  # type: ignore[no-untyped-call]  # torch's own backward is untyped
        self.optimizer.step()
        self.loss_watch.after(self.step + 1)
        self.step += 1
        self.step_in_epoch += 1
        self.meter.count(self.sampler.global_size(step_in_epoch))
        self.progress.write("training", self.step)
        if self.step % config.log_every == 0:
            self._log_step(loss.detach() * weight, lr)

    def _loss(self, batch: Any) -> torch.Tensor:
        with self._autocast():
            return self.recipe.loss(self.replica, batch)

    def _log_step(self, weighted_loss: torch.Tensor, lr: float) -> None:
        """The mean over ranks of the weighted losses is the mean over the global batch, as it is for the gradients."""
        loss = self.group.sum(weighted_loss.float()).item() / self.group.world_size
        values = {"train/loss": loss, "train/lr": lr, "train/images_per_s": self.meter.per_second()}
        self.journal.append(Metrics, step=self.step, epoch=self.epoch + 1, **metric_fields(values))

    def _evaluate(self) -> None:
        self.loss_watch.drain()
        self.progress.write("evaluating", self.step)
        values = evaluate(
            self.model,
            self.val_loader,
            recipe=self.recipe,
            quantities=self.recipe.quantities(self.data),
            group=self.group,
            autocast=self._autocast,
            stop_requested=lambda: self.stop.requested,
            alive=lambda: self.progress.write("evaluating", self.step),
        )
        if values is None:
            self._interrupt()
        self.values = values
        self.epoch += 1
        self.step_in_epoch = 0
        self.journal.append(Metrics, step=self.step, epoch=self.epoch, **metric_fields(values))

    def _save(self) -> None:
        self.loss_watch.drain()
        if self.folder is None:
            return
        self.progress.write("saving", self.step)
        values = self.values if self.step_in_epoch == 0 else {}
        self.folder.save(
            Checkpoint(
                model=self.model.state_dict(),
                optimizer=self.optimizer.state_dict(),
                epoch=self.epoch,
                step_in_epoch=self.step_in_epoch,
                step=self.step,
                steps_per_epoch=self.steps_per_epoch,
                seed=self.config.seed,
                world_size=self.group.world_size,
                config=self.config.model_dump(mode="json"),
                class_names=self.data.class_names,
                samples=self.data.samples,
                values=values,
                metric=values.get(self.recipe.best_metric),
            )
        )

    def _end_epoch(self, begun_s: float) -> None:
        seconds = time.monotonic() - begun_s
        self.journal.append(EpochEnd, epoch=self.epoch, step=self.step, seconds=seconds, **metric_fields(self.values))

    def _complete(self) -> None:
        """Write the completion record: from here on the run has succeeded, whatever becomes of the processes."""
        if self.folder is not None:
            if self.folder.is_empty:  # continued from the end of a run whose metric was never a number
                self._save()
            self.journal.append(
                Completed,
                durable=True,
                step=self.step,
                epoch=self.epoch,
                values=metric_fields(self.values)["values"],
                best_checkpoint=self.folder.best_path,
            )
        self.progress.write("finished", self.step)

    def _interrupt(self) -> NoReturn:
        if self.folder is not None and self.folder.last_step != self.step:
            self._save()
        message = f"interrupted after step {self.step} of {self.total_steps}; the checkpoint holds exactly that point"
        self.journal.append(Log, durable=True, message=message)
        raise RunInterruptedError(message)

    def _autocast(self) -> AbstractContextManager[object]:
        if self.config.amp is None:
            return nullcontext()
        return torch.autocast(self.group.device.type, dtype=torch.bfloat16)


class _Throughput:
    """Samples per second since it was last asked."""

    def __init__(self) -> None:
        self._samples, self._since_s = 0, time.monotonic()

    def count(self, samples: int) -> None:
        self._samples += samples

    def per_second(self) -> float:
        now_s = time.monotonic()
        rate = self._samples / max(now_s - self._since_s, 1e-9)
        self._samples, self._since_s = 0, now_s
        return rate
