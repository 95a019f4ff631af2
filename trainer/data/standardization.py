"""Standardization: 8-bit images as the floating-point input that torchvision's models are tuned for."""

import torch

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, in 0 … 1; torchvision's pretrained weights expect them."""


class Standardization:
    """Takes each channel's mean away and divides by its deviation, on whatever device the images are.

    Its numbers are kept on the device: sent there with each batch, they would have the host wait for the device.
    """

    def __init__(self) -> None:
        self._numbers: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Return [N, 3, H, W] uint8 as float32."""
        mean, deviation = self._on(images.device)
        return (
            images.float().sub_(mean).div_(deviation)
        )  # in place: on the CPU, new pages cost more than the arithmetic

    def _on(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        if device not in self._numbers:
            self._numbers[device] = (
                torch.tensor(_MEAN, device=device).mul_(255).view(3, 1, 1),
                torch.tensor(_DEVIATION, device=device).mul_(255).view(3, 1, 1),
            )
        return self._numbers[device]
