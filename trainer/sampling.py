"""Which samples a rank takes at each step: exactly its share of each global batch, nothing twice, nothing left out."""

from collections.abc import Callable, Iterator, Sized
from typing import Any

from torch.utils.data import Dataset, DistributedSampler

from trainer.seeds import sample_order

Key = tuple[int, int]
"""What a loader asks a training set for: the epoch, from 0, and the sample's index (see trainer.data.seeded)."""


class GlobalBatchSampler(DistributedSampler[list[Key]]):
    """Rank r's share of each global batch: `order[k*B:(k+1)*B][r::W]` of batch k, in an order of seed and epoch only.

    torch's own sampler deals whole epochs out to ranks, and pads or drops so that all get the same number. This one
    cuts the same epoch into the same global batches whatever the number of ranks, and yields B/W samples for each. In
    an uneven last batch some ranks take one sample fewer; a rank left with none repeats the batch's first sample, which
    `weight` counts as 0.

    A batch may be computed in `parts` (trainer.micro_batches). What is yielded, numbered and weighed is a part; which
    samples a step takes, and whether any are left out, is the batches' alone. An optimizer step takes `accumulate`
    batches, the last one of an epoch those that are left.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        *,
        batch: int,
        rank: int,
        world_size: int,
        seed: int,
        parts: int = 1,
        accumulate: int = 1,
        leaves_out: Callable[[int], bool] | None = None,
    ) -> None:
        """`leaves_out`: whether so many samples over all ranks are too few to compute at once. A last batch of so many
        is left out, unless it is the only one; a last part of so many shares the samples of the one before it."""
        assert isinstance(dataset, Sized)
        assert batch % (world_size * parts) == 0, "checked before any rank was started, or by micro_batch"
        super().__init__(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=seed)
        self.batch = batch
        self.part = batch // parts
        """Samples of a full part, over all ranks."""
        self.accumulate = accumulate
        self.first_step = 0
        """Step in the epoch that the next iteration begins with."""
        last = len(dataset) % batch
        is_left_out = leaves_out is not None and 0 < last < len(dataset) and leaves_out(last)
        self.dropped_samples = last if is_left_out else 0
        self.samples = len(dataset) - self.dropped_samples
        """Samples that an epoch takes."""
        batches = -(-self.samples // batch)
        self.steps_per_epoch = -(-batches // accumulate)
        self._parts_of_step = accumulate * parts
        self._full_parts = max(0, batches - 1) * parts
        """Parts of the batches before the last, all alike."""
        self._last_sizes = self._cut(self.samples - self._full_parts * self.part, leaves_out)
        """The samples of each part of the last batch."""
        self.parts_per_epoch = self._full_parts + len(self._last_sizes)

    @property
    def has_idle_ranks(self) -> bool:
        """Whether some rank has no sample of its own in some part of the last batch."""
        return any(size < self.num_replicas for size in self._last_sizes)

    def start_at(self, epoch: int, step: int) -> None:
        """Let the next iteration yield epoch `epoch` from its step `step` (from 0) on."""
        self.set_epoch(epoch)
        self.first_step = step

    def parts_of(self, step: int) -> range:
        """Return the parts in the epoch that a step takes."""
        first = step * self._parts_of_step
        return range(first, min(first + self._parts_of_step, self.parts_per_epoch))

    def global_size(self, part: int) -> int:
        """Number of samples in a part, over all ranks."""
        return self.part if part < self._full_parts else self._last_sizes[part - self._full_parts]

    def local_size(self, part: int) -> int:
        """Number of samples of it that are this rank's; 0 where it only repeats one."""
        return len(range(self.rank, self.global_size(part), self.num_replicas))

    def step_size(self, step: int) -> int:
        """Number of samples that a step takes over all ranks."""
        return sum(map(self.global_size, self.parts_of(step)))

    def weight(self, part: int) -> float:
        """Factor for this rank's mean loss over a part, so that each sample of the step counts once.

        DDP takes the mean over ranks of the gradients that a rank has added up over the step's parts.
        """
        return self.local_size(part) * self.num_replicas / self.step_size(part // self._parts_of_step)

    def __iter__(self) -> Iterator[list[Key]]:
        order = sample_order(self.samples + self.dropped_samples, seed=self.seed, epoch=self.epoch)
        begin = self.first_step * self.accumulate * self.batch
        for part in self._parts_left():
            end = begin + self.global_size(part)
            indices = order[begin:end]
            yield [(self.epoch, index) for index in indices[self.rank :: self.num_replicas] or indices[:1]]
            begin = end

    def __len__(self) -> int:
        return len(self._parts_left())

    def _parts_left(self) -> range:
        return range(self.first_step * self._parts_of_step, self.parts_per_epoch)

    def _cut(self, samples: int, leaves_out: Callable[[int], bool] | None) -> list[int]:
        """Cut a batch into full parts and a rest, which evens out with the part before it or joins it if too small.

        All parts but the last divide by the number of ranks, so that a rank takes the same of them as of the whole.
        """
        sizes = [self.part] * (samples // self.part) + ([rest] if (rest := samples % self.part) else [])
        if leaves_out is None or leaves_out(self.part) or self.part == self.num_replicas:
            # Full parts are as small already, or of one sample on each rank, which then has no memory for a second.
            return sizes
        while len(sizes) > 1 and leaves_out(sizes[-1]):
            both = sizes.pop() + sizes.pop()
            cuts = range(self.num_replicas, both, self.num_replicas)
            enough = [cut for cut in cuts if not (leaves_out(cut) or leaves_out(both - cut))]
            first = min(enough, key=lambda cut: max(cut, both - cut), default=both)
            sizes += [first, both - first] if first < both else [both]
        return sizes


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
