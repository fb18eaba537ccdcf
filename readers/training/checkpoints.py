"""Checkpoints that survive a kill: one counts once it is marked as whole.

The Trainer writes a checkpoint's files one by one, so a killed process can leave half of one.
"""

# ruff: noqa: ARG002 -- the Trainer's callbacks take more than these use

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from accelerate import PartialState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME

_MARK = ".whole"


def step_of(checkpoint: Path) -> int:
    """Returns the step after which a checkpoint was taken."""
    return int(checkpoint.name.rpartition("-")[2])


def whole(folder: Path) -> list[Path]:
    """Returns the checkpoints that are whole, in the order of their steps."""
    checkpoints = [path.parent for path in folder.glob(f"checkpoint-*/{_MARK}")]
    return sorted(checkpoints, key=step_of)


def last_whole(folder: Path) -> Path | None:
    """Returns the last whole checkpoint, if any; what is not whole is removed."""
    checkpoints = whole(folder)
    for path in folder.glob("checkpoint-*"):
        if path not in checkpoints:
            shutil.rmtree(path)
    return checkpoints[-1] if checkpoints else None


class CheckpointMarker(TrainerCallback):
    """Marks checkpoints as whole, and removes those that are needed no more."""

    def __init__(self, *, keep_all: bool) -> None:
        """Keeps the best and the last, or all."""
        self._keep_all = keep_all

    def on_save(
        self, args: TrainingArguments, state: TrainerState, *_: object, **__: object
    ) -> None:
        """Marks the checkpoint that was just written, by all processes."""
        PartialState().wait_for_everyone()  # each writes the state of its own draws
        if not state.is_world_process_zero:
            return
        folder = Path(str(args.output_dir))
        (folder / f"checkpoint-{state.global_step}" / _MARK).touch()
        needed = {state.global_step, state.best_global_step}
        for path in whole(folder):
            if not self._keep_all and step_of(path) not in needed:
                (path / _MARK).unlink()  # first: what follows may be cut short
                shutil.rmtree(path)


class StepLogger(TrainerCallback):
    """Tells of every step, and ends training once losses on validation fall no more.

    Losses are told, measured and saved at the same steps, the last one included; so who goes on
    from a checkpoint tells the same as who never stopped.
    """

    def __init__(
        self, tell: Callable[[], None], patience: int, begin: Callable[[int], None]
    ) -> None:
        """Ends after so many measurements in a row without a lower loss; 0 never does."""
        self._tell, self._patience, self._begin = tell, patience, begin

    def on_epoch_begin(self, args: object, state: TrainerState, *_: object, **__: object) -> None:
        """Tells the data set, which the loader does not in an epoch that is gone on with."""
        self._begin(int(state.epoch or 0))

    def on_step_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Counts a step."""
        self._tell()
        if state.global_step >= state.max_steps:
            control.should_evaluate = control.should_save = True
        control.should_log |= control.should_save

    def on_epoch_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Measures and saves nothing twice."""
        measured = state.log_history[-1] if state.log_history else {}
        if "eval_loss" in measured and measured["step"] == state.global_step:
            control.should_evaluate = control.should_save = False
        control.should_log |= control.should_save

    def on_evaluate(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Ends training if it is time to."""
        control.should_training_stop |= _exhausted(state.log_history, self._patience)


def finished(checkpoint: Path, patience: int) -> Sequence[Mapping[str, float]] | None:
    """Returns all that was measured up to a checkpoint, if training was over with it."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    is_over = state.global_step >= state.max_steps or _exhausted(state.log_history, patience)
    return state.log_history if is_over else None


def _exhausted(history: Sequence[Mapping[str, float]], patience: int) -> bool:
    """Says whether as many losses on validation in a row were not the lowest yet."""
    losses = [row["eval_loss"] for row in history if "eval_loss" in row]
    return bool(patience and losses) and len(losses) - 1 - losses.index(min(losses)) >= patience
