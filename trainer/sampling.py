"""Which samples a rank takes at each step: exactly its share of each global batch, nothing twice, nothing left out."""

from collections.abc import Iterator, Sized
from typing import Any

from torch.utils.data import Dataset, DistributedSampler

from trainer.seeds import sample_order


class GlobalBatchSampler(DistributedSampler[int]):
    """Rank r's share of each global batch: `order[k*B:(k+1)*B][r::W]` at step k, in an order of seed and epoch only.

    torch's own sampler deals whole epochs out to ranks, and pads or drops so that all get the same number. This one
    cuts the same epoch into the same global batches whatever the number of ranks, and yields B/W indices for each, so
    that a loader with batch size B/W forms its batches along the same cuts. In an uneven last batch some ranks take
    one sample fewer; a rank left with none repeats the batch's first sample, which `weight` counts as 0.
    """

    def __init__(
        self, dataset: Dataset[Any], *, batch: int, rank: int, world_size: int, seed: int, smallest_share: int = 0
    ) -> None:
        """`smallest_share`: a last batch that leaves any rank fewer samples is left out, unless it is the only one."""
        assert isinstance(dataset, Sized)
        assert batch % world_size == 0, "checked before any rank was started"
        super().__init__(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=seed)
        self.samples = len(dataset)
        self.batch = batch
        self.first_step = 0
        """Step in the epoch that the next iteration begins with."""
        last = self.samples % batch
        self.dropped_samples = last if self.samples > batch and 0 < last < smallest_share * world_size else 0
        self.steps_per_epoch = -(-(self.samples - self.dropped_samples) // batch)

    def start_at(self, epoch: int, step: int) -> None:
        """Let the next iteration yield epoch `epoch` from its step `step` (from 0) on."""
        self.set_epoch(epoch)
        self.first_step = step

    def global_size(self, step: int) -> int:
        """Number of samples in the global batch of a step in the epoch."""
        return min(self.batch, self.samples - step * self.batch)

    def local_size(self, step: int) -> int:
        """Number of samples of it that are this rank's; 0 where it only repeats one."""
        return len(range(self.rank, self.global_size(step), self.num_replicas))

    def weight(self, step: int) -> float:
        """Factor for this rank's mean loss, so that DDP's mean over ranks weighs each sample of the batch once."""
        return self.local_size(step) * self.num_replicas / self.global_size(step)

    def __iter__(self) -> Iterator[int]:
        order = sample_order(self.samples, seed=self.seed, epoch=self.epoch)
        for step in range(self.first_step, self.steps_per_epoch):
            global_batch = order[step * self.batch : (step + 1) * self.batch]
            yield from global_batch[self.rank :: self.num_replicas] or global_batch[:1]

    def __len__(self) -> int:
        return sum(max(1, self.local_size(step)) for step in range(self.first_step, self.steps_per_epoch))


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
