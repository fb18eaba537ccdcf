"""Checks of the machine for a training, and the processes that train together."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.training import Training
from leporello.models.distributed import processes
from leporello.readers.backends import pretrained

if TYPE_CHECKING:
    from accelerate import PartialState

_TIMEOUT = timedelta(days=1)  # processes wait for the slowest preparation
_ACCELERATE = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


def check(reader: Any, settings: Training) -> None:  # noqa: ANN401 -- any reader with a device
    """Checks that the machine and the launcher support the settings; joins the processes."""
    _check_launcher(settings)
    _check_device(reader.device)
    if settings.precision == "float16" and is_cpu(reader.device):
        raise UserError(
            "train.precision: float16 needs a GPU: --set train.precision=float32, or bfloat16"
        )
    if processes() > 1:
        group(reader.device)


def _check_launcher(settings: Training) -> None:
    if settings.accumulate % processes():
        raise UserError(
            f"train.accumulate is {settings.accumulate}, which {processes()} processes cannot"
            f" share evenly: set it to a multiple of {processes()}"
        )
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if launched not in ("no", _ACCELERATE[settings.precision]):
        raise UserError(
            f"accelerate was launched with mixed_precision {launched}, but train.precision is"
            f" {settings.precision}: launch with --mixed_precision no, and set only train.precision"
        )


def _check_device(name: str) -> None:
    """Raises `UserError` for a device that the Trainer would silently replace by another."""
    import torch

    if name == "auto":
        return
    pretrained._device(name)
    # The Trainer ignores the number in `cuda:1`, so the wrong GPU would be used in silence.
    if torch.device(name).index:
        raise UserError(
            f"device: training uses the first visible GPU, not {name}: omit the number, and"
            f" set CUDA_VISIBLE_DEVICES={torch.device(name).index}"
        )


def is_cpu(device: str) -> bool:
    """Returns whether training on a device, as torch or a reader names it, uses the CPU."""
    import torch

    forced = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true")
    auto = device == "auto" and not torch.cuda.is_available()
    return forced or auto or device == "cpu"


def group(device: str) -> PartialState:
    """Returns the processes that train together; the first call joins them."""
    from accelerate import PartialState

    return PartialState(cpu=is_cpu(device), timeout=_TIMEOUT)
