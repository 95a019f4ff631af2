"""Training: one rank's walk through the epochs. Every rank runs this; rank 0 alone writes journal and checkpoints."""

import math
import time
from collections.abc import Iterator, Sized
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainer.assembly import assemble
from trainer.callbacks import observed
from trainer.checkpoints import Checkpoint, CheckpointFolder, non_finite
from trainer.environment import RankEnvironment
from trainer.errors import RunInterruptedError
from trainer.evaluation import evaluate
from trainer.freezing import set_training
from trainer.journal import Completed, EpochEnd, Log, Metrics, Started
from trainer.loss_watch import LossWatch
from trainer.optimization import set_learning_rate
from trainer.patience import Patience
from trainer.precision import autocast, in_float32_or_more
from trainer.process_group import ProcessGroup, device_label
from trainer.profiling import StepProfiler
from trainer.reporting import ProgressFile, metric_fields, open_journal, warn
from trainer.resuming import Resume, resume_path
from trainer.run_dir import RunConfig, RunDir
from trainer.schedules import learning_rate
from trainer.stepping import Step, Stepper
from trainer.stopping import StopAgreement
from trainer.strategies import replicate
from trainer.throughput import Throughput

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
        alive=progress.alive,
    )
    training = Training(run_dir, config, group, progress)
    training.run()
    group.wait_for_all()  # nobody tears the group down while another still needs it
    progress.write("finished", training.step)  # not before: it is the proof that rank 0 has its completion record
    group.leave()


class Training:
    """The state of a run on one rank, and the loop over it."""

    def __init__(self, run_dir: RunDir, run_config: RunConfig, group: ProcessGroup, progress: ProgressFile) -> None:
        self.run_config, self.group, self.progress = run_config, group, progress
        # Rank 0 says what to continue from before it writes a word: the others might read its new records.
        path = group.share("resume", resume_path(run_dir, run_config) if group.rank == 0 else "")
        self.resume = Resume.read(Path(path), group.environment, brought=run_config.resume) if path else None
        batch = self.resume.batch if self.resume else None
        self.parts = assemble(run_dir, run_config, group, is_continued=self.resume is not None, batch=batch)
        self.config = self.parts.config
        self.journal = observed(open_journal(run_dir, rank=group.rank), self.parts.callbacks)
        never_finite = non_finite(self.parts.model)  # as it was built: an attention mask, not a weight
        self.folder = (
            CheckpointFolder(run_dir, self.journal, never_finite=never_finite, alive=progress.alive)
            if group.rank == 0
            else None
        )
        self.loss_watch = LossWatch(group.device, rank=group.rank)
        self.stop = StopAgreement(group.store, rank=group.rank, lead=self.loss_watch.lead)
        self.meter = Throughput()
        profiles = self.config.profile and group.world_size == 1
        self.profiler = StepProfiler(run_dir.profile, group.device, self.journal, is_on=profiles)
        self.patience = Patience(self.config.patience)
        self.epoch = self.step_in_epoch = self.step = 0
        """Epochs completed, steps taken in the epoch after those, and steps taken in all."""
        self.values: dict[str, float] = {}
        """Validation metrics of the last epoch."""
        self.by_class: dict[str, dict[str, float]] = {}
        """Its figures of each class, on rank 0."""
        self.has_evaluated = False
        self.sizes_taken: set[int] = set()
        """The sizes of the batches, over all ranks, that kernels have been compiled, chosen or recorded for."""

    def run(self) -> None:
        """Train the epochs that are left, evaluating and saving after each."""
        if self.resume:
            self._continue_from(self.resume)
        replica = replicate(self.parts.model, group=self.group, config=self.run_config)
        # Of two numbers the sum is the same in any order, and DDP's buckets are of no consequence.
        rehearses = self.step > 0 and self.group.world_size > 2
        self.stepper = Stepper(self.parts, replica, self.group, self.loss_watch, rehearses=rehearses)
        self._begin()
        while self.epoch < self.config.epochs and not self.patience.is_over and not self.is_cut_short():
            begun_s = time.monotonic()
            self._train_epoch()
            if self.is_cut_short():
                self._save()
                break
            self._evaluate()
            self._save()
            self._end_epoch(begun_s)
        self._complete()

    @property
    def steps_per_epoch(self) -> int:
        return self.parts.sampler.steps_per_epoch

    @property
    def total_steps(self) -> int:
        return self.steps_per_epoch * self.config.epochs

    def is_cut_short(self) -> bool:
        """Return whether this is a trial of a few steps, and they are taken."""
        return self.run_config.max_steps is not None and self.step >= self.run_config.max_steps

    def _continue_from(self, resume: Resume) -> None:
        resume.refuse_other_run(self.config, self.parts.data, steps_per_epoch=self.steps_per_epoch)
        resume.restore(self.parts)
        checkpoint = resume.checkpoint
        self.epoch, self.step_in_epoch, self.step = checkpoint.epoch, checkpoint.step_in_epoch, checkpoint.step
        self.values = checkpoint.values
        best = checkpoint.best_metric
        self.patience.continue_at(best[0] if best is not None else None, checkpoint.stale_epochs)

    def _begin(self) -> None:
        self.stop.listen()
        self.group.wait_for_all()  # until here SIGTERM ends a rank at once; past it, every rank stops in step
        parameters = self.parts.model.parameters()
        self.journal.append(
            Started,
            world_size=self.group.world_size,
            devices=tuple(device_label(name, simulated=self.run_config.simulated) for name in self.run_config.devices),
            batch=self.config.batch,
            batch_per_rank=self.config.batch // self.group.world_size,
            accumulate=self.parts.sampler.accumulate,
            micro_batches=self.run_config.micro_batches,
            epochs=self.config.epochs,
            steps_per_epoch=self.steps_per_epoch,
            total_steps=min(self.total_steps, self.run_config.max_steps or self.total_steps),
            parameters=sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
            resumed_step=self.step if self.resume else None,
        )
        data = self.parts.data
        assert isinstance(data.train, Sized)
        assert isinstance(data.val, Sized)
        samples = f"{len(data.train)} training and {len(data.val)} validation samples"
        self.journal.append(Log, message=f"{_shown(data.class_names)}{samples}")
        for message in data.notes:
            self.journal.append(Log, message=message)
        for message in self.parts.warnings:
            warn(self.journal, message)
        if self.resume:
            self.journal.append(Log, message=f"continues from {self.resume.path} at step {self.step}")
            if self.epoch >= self.config.epochs:
                warn(self.journal, f"all {self.config.epochs} epochs are trained already; raise epochs to go on")
            if self.folder is not None:
                self.folder.continue_from(self.resume.path, self.resume.checkpoint)

    def _train_epoch(self) -> None:
        self.parts.sampler.start_at(self.epoch, self.step_in_epoch)
        set_training(self.parts.model, self.config.freeze)
        self.meter = Throughput()
        batches = iter(self.parts.loader)
        with self.profiler.first_epoch(steps_before=self.step, steps=self._steps_left_in_epoch()) as step_is_taken:
            while self.step_in_epoch < self.steps_per_epoch and not self.is_cut_short():
                self.loss_watch.before(self.step + 1)
                if self.stop.stops_before(self.step + 1):
                    self._interrupt()
                self._train_step(batches)
                step_is_taken()
                every = self.config.save_every
                if every and self.step % every == 0 and self.step_in_epoch < self.steps_per_epoch:
                    self._save()

    def _steps_left_in_epoch(self) -> int:
        left = self.steps_per_epoch - self.step_in_epoch
        return left if self.run_config.max_steps is None else min(left, self.run_config.max_steps - self.step)

    def _train_step(self, batches: Iterator[Any]) -> None:
        """Take one optimizer step, over as many batches as are accumulated for it."""
        run_length = {"total_steps": self.total_steps, "steps_per_epoch": self.steps_per_epoch}
        lr = learning_rate(self.config, step=self.step, **run_length)
        set_learning_rate(self.parts.optimizer, lr)
        self._say_if_it_compiles()
        taken = self.stepper.take(batches, epoch=self.epoch, step_in_epoch=self.step_in_epoch, step=self.step)
        self.meter.count(self.parts.sampler.step_size(self.step_in_epoch))
        self.step += 1
        self.step_in_epoch += 1
        self.progress.write("training", self.step)
        if self.step % self.config.log_every == 0:
            self._log_step(taken, lr)

    def _say_if_it_compiles(self) -> None:
        """Say on all ranks alike, for they wait for each other, that a batch of a new size may take long.

        So may a step that is profiled, of which there are some where there is but one rank.
        """
        sizes = set(map(self.parts.sampler.global_size, self.parts.sampler.parts_of(self.step_in_epoch)))
        if not sizes <= self.sizes_taken:
            self.sizes_taken |= sizes
            self.progress.keep("compiling", self.step, through=self.step + self.loss_watch.backlog)
        elif self.profiler.is_at_work:
            self.progress.keep("compiling", self.step, through=self.step + 1)

    def _log_step(self, taken: Step, lr: float) -> None:
        loss = self.group.sum(in_float32_or_more(taken.loss)).item() / self.group.world_size
        values = {"train/loss": loss, "train/lr": lr, "train/images_per_s": self.meter.per_second()}
        if taken.gradient_norm is not None:
            values["train/grad_norm"] = taken.gradient_norm.item()
        if self.parts.scaling.is_on:
            values["train/skipped_steps"] = self.parts.scaling.skipped_steps
        self.journal.append(Metrics, step=self.step, epoch=self.epoch + 1, **metric_fields(values))

    def _evaluate(self) -> None:
        self.loss_watch.drain()
        # Of the first one, each size of batch is compiled for, and for the moving average's own model.
        compiles = self.config.compile and not self.has_evaluated
        self.has_evaluated = True
        self.progress.write("compiling" if compiles else "evaluating", self.step)
        found = evaluate(
            self.parts.evaluated,
            self.parts.val_loader,
            recipe=self.parts.recipe,
            data=self.parts.data,
            group=self.group,
            matter=f"epoch {self.epoch + 1}",
            autocast=partial(autocast, self.config, self.group.device),
            stop_requested=lambda: self.stop.requested,
            alive=self.progress.alive,
            waits=lambda: self.progress.write("waiting", self.step),
        )
        if found is None:
            self._interrupt()
        self.values = found.metrics
        self.by_class = found.by_class
        self.patience.take(self.values[self.parts.recipe.best_metric])
        self.epoch += 1
        self.step_in_epoch = 0
        self.journal.append(Metrics, step=self.step, epoch=self.epoch, **metric_fields(self.values))

    def _save(self) -> None:
        self.loss_watch.drain()
        if self.folder is None:
            # From the next step on this rank waits for rank 0, for as long as that saves.
            self.progress.keep("waiting", self.step, through=self.step + self.loss_watch.backlog)
            return
        self.progress.write("saving", self.step)
        values = self.values if self.step_in_epoch == 0 else {}
        self.folder.save(
            Checkpoint(
                model=self.parts.evaluated.state_dict(),
                unaveraged=self.parts.model.state_dict() if self.parts.average is not None else None,
                optimizer=self.parts.optimizer.state_dict(),
                epoch=self.epoch,
                step_in_epoch=self.step_in_epoch,
                step=self.step,
                steps_per_epoch=self.steps_per_epoch,
                seed=self.config.seed,
                world_size=self.group.world_size,
                config=self.config.model_dump(mode="json"),
                class_names=self.parts.data.class_names,
                samples=self.parts.data.samples,
                values=values,
                metric=self._merit(values),
                stale_epochs=self.patience.stale_epochs,
                scaler=self.parts.scaling.state(),
                skipped_steps=self.parts.scaling.skipped_steps,
            )
        )
        self.progress.write("training", self.step)

    def _merit(self, values: dict[str, float]) -> tuple[float, ...] | None:
        """Return what the best checkpoint goes by: of equal metrics, which a small set has many of, the lower loss."""
        if not values:  # within an epoch
            return None
        recipe = self.parts.recipe
        metric = values[recipe.best_metric]
        return None if math.isnan(metric) else (metric, -values[recipe.tie_metric])

    def _end_epoch(self, begun_s: float) -> None:
        seconds = time.monotonic() - begun_s
        fields = metric_fields(self.values) | {"by_class": self.by_class}
        self.journal.append(EpochEnd, epoch=self.epoch, step=self.step, seconds=seconds, **fields)

    def _complete(self) -> None:
        """Write the completion record: from here on the run has succeeded, whatever becomes of the processes."""
        if self.patience.is_over and self.epoch < self.config.epochs:
            done = f"ends early, after {self.epoch} of {self.config.epochs} epochs"
            self.journal.append(Log, message=f"{done}: {self.patience.reason(self.parts.recipe.best_metric)}")
        if (untrained := self.parts.scaling.warning(self.step)) is not None:
            warn(self.journal, untrained)
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

    def _interrupt(self) -> NoReturn:
        if self.folder is not None and self.folder.last_step != self.step:
            self._save()
        message = f"interrupted after step {self.step} of {self.total_steps}; the checkpoint holds exactly that point"
        self.journal.append(Log, durable=True, message=message)
        raise RunInterruptedError(message)


def _shown(class_names: tuple[str, ...]) -> str:
    """Say which classes there are: a folder that was read otherwise than it was meant shows here first."""
    more = ", …" if len(class_names) > 10 else ""
    return f"{len(class_names)} classes: {', '.join(class_names[:10])}{more}; " if class_names else ""
