"""Checkpoints that survive a kill: only complete ones are used.

The Trainer writes a checkpoint's files one by one, and its state last, so a checkpoint is complete
if its state can be read. After a kill during a removal, the rest is neither the last checkpoint
nor the best one.
"""

# ruff: noqa: ARG002 -- the Trainer passes arguments that these callbacks do not use

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from transformers import TrainerCallback, TrainerControl, TrainerState
from transformers.trainer import TRAINER_STATE_NAME


def step_of(checkpoint: Path) -> int:
    """Returns the step of a checkpoint."""
    return int(checkpoint.name.rpartition("-")[2])


def complete_checkpoints(folder: Path) -> list[Path]:
    """Returns the complete checkpoints in the order of their steps."""
    return sorted(filter(_state, folder.glob("checkpoint-*")), key=step_of)


def last_complete(folder: Path) -> Path | None:
    """Returns the last complete checkpoint, if any, and removes incomplete ones."""
    checkpoints = complete_checkpoints(folder)
    for path in folder.glob("checkpoint-*"):
        if path not in checkpoints:
            shutil.rmtree(path)
    return checkpoints[-1] if checkpoints else None


def _state(checkpoint: Path) -> TrainerState | None:
    try:
        state: TrainerState = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    except (OSError, ValueError):
        return None
    return state


class StepLogger(TrainerCallback):
    """Reports every step, and ends training once the validation loss does not fall any more.

    Losses are also logged with every checkpoint, so that a resumed training logs the same losses as
    one without interruption.
    """

    def __init__(self, report: Callable[[], None], patience: int) -> None:
        """Ends training after `patience` measurements without a lower loss; never with 0."""
        self._report, self._patience = report, patience

    def on_step_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Reports the progress after each step."""
        self._report()
        control.should_log |= control.should_save

    def on_epoch_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Logs the loss with a checkpoint."""
        control.should_log |= control.should_save

    def on_evaluate(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Ends training if the patience is exhausted."""
        control.should_training_stop |= _exhausted(state.log_history, self._patience)


def finished(checkpoint: Path, patience: int) -> Sequence[Mapping[str, float]] | None:
    """Returns the log up to a checkpoint if the training ended with it, otherwise None."""
    state = _state(checkpoint)
    assert state
    is_over = state.global_step >= state.max_steps or _exhausted(state.log_history, patience)
    return state.log_history if is_over else None


def _exhausted(history: Sequence[Mapping[str, float]], patience: int) -> bool:
    """Returns whether the lowest validation loss is `patience` measurements old."""
    # Computed from the log instead of counted, since a kill would lose a counter (decision 26).
    losses = [row["eval_loss"] for row in history if "eval_loss" in row]
    return bool(patience and losses) and len(losses) - 1 - losses.index(min(losses)) >= patience
