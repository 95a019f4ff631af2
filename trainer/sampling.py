"""Which samples a rank takes at each step: exactly its share of each global batch, nothing twice, nothing left out."""

from collections.abc import Callable, Iterator, Sized
from typing import Any

from torch.utils.data import Dataset, DistributedSampler

from trainer.seeds import sample_order

Key = tuple[int, int]
"""What a loader asks a training set for: the epoch, from 0, and the sample's index (see trainer.data.seeded)."""


class GlobalBatchSampler(DistributedSampler[Key]):
    """Rank r's share of each global batch: `order[k*B:(k+1)*B][r::W]` of batch k, in an order of seed and epoch only.

    torch's own sampler deals whole epochs out to ranks, and pads or drops so that all get the same number. This one
    cuts the same epoch into the same global batches whatever the number of ranks, and yields B/W samples for each, so
    that a loader with batch size B/W forms its batches along the same cuts. In an uneven last batch some ranks take
    one sample fewer; a rank left with none repeats the batch's first sample, which `weight` counts as 0.

    An optimizer step takes `accumulate` batches, the last one of an epoch those that are left.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        *,
        batch: int,
        rank: int,
        world_size: int,
        seed: int,
        accumulate: int = 1,
        leaves_out: Callable[[int], bool] | None = None,
    ) -> None:
        """`leaves_out`: whether a last batch of so many samples over all ranks is left out; not where it is the only
        one."""
        assert isinstance(dataset, Sized)
        assert batch % world_size == 0, "checked before any rank was started"
        super().__init__(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=seed)
        self.batch = batch
        self.accumulate = accumulate
        self.first_step = 0
        """Step in the epoch that the next iteration begins with."""
        last = len(dataset) % batch
        is_left_out = leaves_out is not None and 0 < last < len(dataset) and leaves_out(last)
        self.dropped_samples = last if is_left_out else 0
        self.samples = len(dataset) - self.dropped_samples
        """Samples that an epoch takes."""
        self.batches_per_epoch = -(-self.samples // batch)
        self.steps_per_epoch = -(-self.batches_per_epoch // accumulate)

    @property
    def has_idle_ranks(self) -> bool:
        """Whether some rank has no sample of its own in the last batch."""
        return self.batches_per_epoch > 0 and self.global_size(self.batches_per_epoch - 1) < self.num_replicas

    def start_at(self, epoch: int, step: int) -> None:
        """Let the next iteration yield epoch `epoch` from its step `step` (from 0) on."""
        self.set_epoch(epoch)
        self.first_step = step

    def batches_of(self, step: int) -> range:
        """Return the batches in the epoch that a step takes."""
        first = step * self.accumulate
        return range(first, min(first + self.accumulate, self.batches_per_epoch))

    def global_size(self, batch: int) -> int:
        """Number of samples in a global batch."""
        return min(self.batch, self.samples - batch * self.batch)

    def local_size(self, batch: int) -> int:
        """Number of samples of it that are this rank's; 0 where it only repeats one."""
        return len(range(self.rank, self.global_size(batch), self.num_replicas))

    def step_size(self, step: int) -> int:
        """Number of samples that a step takes over all ranks."""
        return sum(map(self.global_size, self.batches_of(step)))

    def weight(self, batch: int) -> float:
        """Factor for this rank's mean loss over a batch, so that each sample of the step counts once.

        DDP takes the mean over ranks of the gradients that a rank has added up over the step's batches.
        """
        return self.local_size(batch) * self.num_replicas / self.step_size(batch // self.accumulate)

    def __iter__(self) -> Iterator[Key]:
        order = sample_order(self.samples + self.dropped_samples, seed=self.seed, epoch=self.epoch)
        for batch in self._batches_left():
            indices = order[batch * self.batch : batch * self.batch + self.global_size(batch)]
            for index in indices[self.rank :: self.num_replicas] or indices[:1]:
                yield self.epoch, index

    def __len__(self) -> int:
        return sum(max(1, self.local_size(batch)) for batch in self._batches_left())

    def _batches_left(self) -> range:
        return range(self.first_step * self.accumulate, self.batches_per_epoch)


class ShardSampler(DistributedSampler[int]):
    """Rank r's share of a validation set: samples r, r+W, r+2W, …, without padding and without repeats."""

    def __init__(self, dataset: Dataset[Any], *, rank: int, world_size: int) -> None:
        assert isinstance(dataset, Sized)
        super().__init__(dataset, num_replicas=world_size, rank=rank, shuffle=False)
        self._share = range(rank, len(dataset), world_size)

    def __iter__(self) -> Iterator[int]:
        return iter(self._share)

    def __len__(self) -> int:
        return len(self._share)
