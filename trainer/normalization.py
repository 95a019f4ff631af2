"""Normalisation: the parts of a batch that BatchNorm normalises by themselves, and what follows for batches."""

from dataclasses import dataclass

from trainer.errors import ConfigError
from trainer.run_dir import RunConfig
from trainer.sampling import GlobalBatchSampler

SMALL_PART = 16
"""Samples below which BatchNorm's own statistics of a part are worth a warning."""


@dataclass(frozen=True)
class Normalization:
    """How the batches of a model with BatchNorm are cut."""

    ranks: int
    """Ranks that normalise their share by themselves; 1 where BatchNorm is synchronized."""
    devices: int
    """Devices that normalise their part of such a share by themselves, which DataParallel cuts."""

    @classmethod
    def of(cls, config: RunConfig, *, is_synchronized: bool) -> "Normalization":
        is_cut = config.train.strategy == "dp" and not config.simulated
        return cls(ranks=1 if is_synchronized else config.world_size, devices=len(config.devices) if is_cut else 1)

    def smallest_part(self, samples: int) -> int:
        """Return the number of samples in the smallest part of a global batch of so many."""
        share = samples // self.ranks
        chunk = -(-share // self.devices)  # as torch.chunk cuts: all alike but the last
        return share - chunk * (-(-share // chunk) - 1) if chunk else 0

    def leaves_out(self, samples: int) -> bool:
        """Return whether so many samples at once are too few: a part of one has no deviation to divide by."""
        return self.smallest_part(samples) < 2

    def refuse_too_few(self, sampler: GlobalBatchSampler) -> None:
        """Raise ConfigError where an epoch's only batch is too small, though not chosen so."""
        if sampler.samples >= sampler.batch or not self.leaves_out(sampler.samples):
            return
        parts = self.ranks * self.devices
        ways = "sync_bn: true, fewer devices, or more images" if parts > 1 else "more images"
        raise ConfigError(
            f"data: {sampler.samples} training {'image' if sampler.samples == 1 else 'images'} in {parts} "
            f"{'parts leave one of them' if parts > 1 else 'batch leaves it'} fewer than 2, too few for BatchNorm to "
            f"normalise by; use {ways}"
        )

    def warnings(self, sampler: GlobalBatchSampler) -> list[str]:
        """Return what the user should know about the batches of this run."""
        warnings = []
        parts = self.ranks * self.devices
        if left_out := sampler.dropped_samples:
            among = f", in {parts} parts," if parts > 1 else ""
            warnings.append(
                f"the last {left_out} of each epoch's samples {'is' if left_out == 1 else 'are'} left out: alone in a "
                f"batch{among} they are too few for BatchNorm, which needs 2 to normalise by"
            )
        own = sampler.part // self.ranks
        if self.ranks > 1 and own < SMALL_PART:
            warnings.append(
                f"sync_bn is off, and each rank's BatchNorm normalises by its own {own} "
                f"{'sample' if own == 1 else 'samples'} only: below "
                f"{SMALL_PART} that is noisy, and not what one rank would train; sync_bn: true takes all ranks'"
            )
        return warnings
