"""The watch on the loss: every one is looked at as soon as it is known, which also keeps a rank close to its device."""

import math
from collections import deque
from dataclasses import dataclass

import torch

from trainer.errors import NonFiniteLossError


@dataclass(frozen=True)
class _Pending:
    step: int
    loss: torch.Tensor
    done: torch.cuda.Event


class LossWatch:
    """Finds the first non-finite loss of this rank, without waiting for the device at every step.

    Where a step's result is there at once (CPU) or waiting is the only way (MPS), the loss is looked at before the
    backward pass. On CUDA it is copied to the host in the background and looked at one step later, when the wait costs
    nothing because the device still has the step in between to do. That same wait bounds how far the rank runs ahead:
    when `before(step)` returns, step - 2 is complete on the device, which trainer.stopping relies on.
    """

    def __init__(self, device: torch.device, *, rank: int) -> None:
        self._cuda = device.type == "cuda"
        self._rank = rank
        self._pending: deque[_Pending] = deque()
        self._loss: torch.Tensor | None = None

    @property
    def lead(self) -> int:
        """Steps that may be under way in some rank when rank 0 begins one."""
        return 2 if self._cuda else 1

    @property
    def backlog(self) -> int:
        """Steps at most that a rank has issued, and its device not completed, while it waits for the device."""
        return 2 if self._cuda else 0

    def before(self, step: int) -> None:
        """Call before looking whether `step` is taken. Raises NonFiniteLossError for an earlier step."""
        while self._pending and self._pending[0].step <= step - 2:
            self._look(self._pending.popleft())

    def loss(self, step: int, loss: torch.Tensor) -> None:
        """Call with the mean loss of each batch of a step before its backward pass.

        Raises NonFiniteLossError if it is known.
        """
        if not self._cuda:
            self._check(step, loss.item())
            return
        # Of several batches the sum: it is not finite where one of them is not.
        self._loss = loss.detach().float() if self._loss is None else self._loss + loss.detach()

    def after(self, step: int) -> None:
        """Call when all of a step has been issued, the optimizer's update included."""
        if self._loss is not None:
            on_host = torch.empty((), dtype=torch.float32, pin_memory=True)
            on_host.copy_(self._loss, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's own __new__ is untyped
            done.record()
            self._pending.append(_Pending(step, on_host, done))
            self._loss = None

    def drain(self) -> None:
        """Wait for all steps so far. Raises NonFiniteLossError for the first one that was not finite."""
        while self._pending:
            self._look(self._pending.popleft())

    def _look(self, pending: _Pending) -> None:
        pending.done.synchronize()
        self._check(pending.step, pending.loss.item())

    def _check(self, step: int, loss: float) -> None:
        if not math.isfinite(loss):
            raise NonFiniteLossError(
                f"the loss was {loss} at step {step} on rank {self._rank}; try a smaller lr "
                "(earlier checkpoints are intact)"
            )
