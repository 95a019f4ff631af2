"""Loss scaling: what keeps fp16's small gradients from vanishing, and skips the steps whose large ones overflow."""

from typing import Any

import torch
from torch import optim

from trainer.config import TrainConfig
from trainer.errors import NonFiniteLossError

SMALLEST_SCALE = 1e-4
"""As fairseq's `--min-loss-scale`: down here, after some thirty skipped steps, gradients do not overflow because of the
scale."""


class LossScaling:
    """Multiplies the loss before its backward pass and divides the gradients after it (Micikevicius et al., "Mixed
    Precision Training", 2018, section 3.2). Without fp16 it changes nothing.

    The factor is torch's: halved where a gradient is not finite, and then the step is skipped; doubled after 2000 steps
    in a row without. Gradients are averaged over the ranks before they are looked at, and averages of what is not
    finite anywhere are finite nowhere: so all ranks skip the same steps, and have the same factor.
    """

    def __init__(self, config: TrainConfig, device: torch.device) -> None:
        self.is_on = config.amp == "fp16"
        self.skipped_steps = 0
        """Steps of the run that moved no weight."""
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.is_on)
        self._scale = self._scaler.get_scale()

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss to differentiate."""
        scaled: torch.Tensor = self._scaler.scale(loss)
        return scaled

    def unscale(self, optimizer: optim.Optimizer) -> None:
        """Bring the optimizer's gradients, averaged over the ranks, to their own size."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: optim.Optimizer, *, number: int, rank: int) -> bool:
        """Let the optimizer take step `number` (from 1) unless a gradient is not finite; return whether it did.

        Raises NonFiniteLossError where it is not the scale that makes them so.
        """
        self._scaler.step(optimizer)
        self._scaler.update()
        before, self._scale = self._scale, self._scaler.get_scale()
        if self._scale >= before:
            return True
        self.skipped_steps += 1
        if self._scale < SMALLEST_SCALE:
            raise NonFiniteLossError(
                f"gradients were still not finite at step {number} on rank {rank}, with a loss scaled by {before:.1e}: "
                "amp fp16 does not suit this model; try amp: bf16 or a smaller lr (earlier checkpoints are intact)"
            )
        return False

    def warning(self, steps: int) -> str | None:
        """Return what the user should know at the end of a run of so many steps."""
        if not 0 < steps == self.skipped_steps:
            return None
        return (
            f"no weight was trained: the gradients of each of the {steps} steps overflowed, while fp16 was still "
            "looking for the scale of the loss; train longer, or try amp: bf16 or a smaller lr"
        )

    def state(self) -> dict[str, Any] | None:
        """Return what a checkpoint keeps of the factor; None without fp16."""
        return self._scaler.state_dict() or None

    def restore(self, state: dict[str, Any] | None, *, skipped_steps: int) -> None:
        """Go on as a checkpoint was; where it was made without fp16, with a factor of its own."""
        self.skipped_steps = skipped_steps
        if self.is_on and state is not None:
            self._scaler.load_state_dict(state)
            self._scale = self._scaler.get_scale()
