"""Trains the network phase by phase, and resumes interrupted trainings.

Random draws depend only on the settings, so a resumed training gives the result of an uninterrupted
one.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leporello.core.errors import UserError
from recipes.answers.base import Base
from recipes.answers.network import AnswerNetwork, WindowBatch, collate, hardest, loss_of
from recipes.answers.settings import AnswersSettings, Phase
from recipes.answers.windows import Group, GroupMaker, draws, in_batches

_CHUNK = 192  # groups that are sorted into batches together


@dataclass
class TrainingState:
    """Progress of a training."""

    phase: int = 0  # number of the phase
    chunk: int = 0  # number of the chunk of groups in the phase
    batch: int = 0  # number of the next batch in the chunk
    tokens: int = 0  # number of tokens read in the phase
    steps: int = 0  # total number of steps
    all_tokens: int = 0  # total number of tokens read
    seconds: float = 0.0  # total time of the steps in seconds


class AnswersTraining:
    """A running training.

    A checkpoint in the folder is resumed.
    """

    def __init__(
        self,
        settings: AnswersSettings,
        base: Base,
        maker: GroupMaker,
        rows: Mapping[str, Sequence[int]],
        folder: Path,
    ) -> None:
        self.settings, self.base, self.folder = settings, base, folder
        self._maker, self._rows = maker, rows
        self._device = device_named(settings.device)
        torch.manual_seed(settings.seed)
        self.network = AnswerNetwork(base.encoder, settings.frozen).to(self._device)
        if base.trained:
            self.network.load_state_dict(base.trained)
        heads = [*self.network.span.parameters(), *self.network.label.parameters()]
        body = [p for p in self.network.encoder.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            [{"params": body, "scale": 1.0}, {"params": heads, "scale": settings.head_rate}],
            lr=0.0,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.state = TrainingState()
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()

    def run(self, after_step: Callable[[], None]) -> None:
        """Trains to the end of the last phase; the network then has the averaged weights."""
        torch.set_num_threads(self.settings.threads)
        saved = time.monotonic()
        state, phases = self.state, self.settings.phases
        while state.phase < len(phases):
            phase = phases[state.phase]
            for groups in self._batches(phase):
                self._step(phase, groups)
                if state.tokens >= phase.tokens:
                    state.phase += 1
                    state.chunk = state.batch = state.tokens = 0
                has_ended = state.phase == len(phases)
                if has_ended or state.steps % self.settings.snapshot_steps == 0:
                    self._snapshot()
                if has_ended or time.monotonic() - saved >= self.settings.checkpoint_seconds:
                    self._save()
                    saved = time.monotonic()
                after_step()
                if not state.tokens:
                    break
        self.network.load_state_dict(self._average())

    def _batches(self, phase: Phase) -> Iterator[list[Group]]:
        """Yields the remaining batches of a phase, without end."""
        settings, state = self.settings, self.state
        seed = settings.seed * 1000 + state.phase
        weights = phase.weights or {name: len(rows) for name, rows in self._rows.items()}
        for number, chunk in enumerate(draws(self._rows, weights, seed, _CHUNK)):
            if number < state.chunk:
                continue
            groups = [self._maker.make(draw, phase) for draw in chunk]
            for batch in in_batches(groups, settings.batch, (seed, number))[state.batch :]:
                state.batch += 1
                yield batch
            state.chunk += 1
            state.batch = 0

    def _rate(self, phase: Phase) -> float:
        state = self.state
        warmup = min(1.0, (state.tokens + 1) / self.settings.warmup) if state.phase == 0 else 1.0
        decay = max(0.0, 1 - state.tokens / phase.tokens) if phase.decay else 1.0
        return phase.learning_rate * warmup * decay

    def _step(self, phase: Phase, groups: list[Group]) -> None:
        start, rate = time.monotonic(), self._rate(phase)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        batch = collate(groups, self.base.special, self._device)
        if phase.hardest:
            with torch.no_grad():
                spans, _ = self._logits(batch)
            batch = hardest(batch, spans, phase.hardest)
        logits = self._logits(batch)
        weights = (self.settings.window_loss, self.settings.label_loss)
        loss, parts = loss_of(logits, batch, *weights)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no type for it
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        tokens = int(batch.mask.sum())
        self.state.tokens += tokens
        self.state.all_tokens += tokens
        self.state.steps += 1
        self.state.seconds += time.monotonic() - start
        counts = {"rate": rate, "groups": len(groups), "windows": len(batch.labels)}
        line = {**asdict(self.state), **counts, "padded": batch.mask.numel(), **parts}
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _logits(self, batch: WindowBatch) -> tuple[Tensor, Tensor]:
        is_half = self.settings.precision == "bfloat16"
        with torch.autocast(self._device, torch.bfloat16, enabled=is_half):
            spans, labels = self.network(batch.ids, batch.types, batch.mask)
        return spans.float(), labels.float()

    def _save(self) -> None:
        """Writes the checkpoint."""
        saved = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": asdict(self.state),
        }
        _write(saved, self.folder / "checkpoint-last.pt")

    def _resume(self) -> None:
        path, log = self.folder / "checkpoint-last.pt", self.folder / "log.jsonl"
        if path.exists():
            saved = torch.load(path, weights_only=True, map_location=self._device)
            self.network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.state = TrainingState(**saved["state"])
        if log.exists():  # steps after the checkpoint are repeated
            lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
            log.write_text("".join(lines[: self.state.steps]), encoding="utf-8")

    def _snapshot(self) -> None:
        """Writes the weights of this step, and removes snapshots that are too old to average."""
        _write(self.network.state_dict(), self.folder / f"snapshot-{self.state.steps:08d}.pt")
        for old in self._snapshots()[: -self.settings.average]:
            old.unlink()

    def _snapshots(self) -> list[Path]:
        paths = sorted(self.folder.glob("snapshot-*.pt"))
        return [path for path in paths if int(path.stem[-8:]) <= self.state.steps]

    def _average(self) -> dict[str, Tensor]:
        """Returns the mean of the last snapshots, which has the effect of a falling rate."""
        sums: dict[str, Tensor] = {}
        snapshots = self._snapshots()[-self.settings.average :]
        for path in snapshots:
            state = torch.load(path, weights_only=True, map_location=self._device)
            sums = {name: sums.get(name, 0) + value for name, value in state.items()}
        return {name: value / len(snapshots) for name, value in sums.items()}


def validation_scores(
    network: AnswerNetwork, special: tuple[int, int], groups: Sequence[Group], batch: int
) -> dict[str, float]:
    """Returns the mean of each part of the loss over groups, and the share of right labels."""
    sums: dict[str, float] = defaultdict(float)
    device = str(network.span.weight.device)
    network.eval()
    for batch_groups in in_batches(groups, batch, (0,)):
        tensors = collate(batch_groups, special, device)
        with torch.no_grad():
            logits = network(tensors.ids, tensors.types, tensors.mask)
            _, parts = loss_of(logits, tensors, 1.0, 1.0)
        right = (logits[1].argmax(dim=1) == tensors.labels).float().mean()
        for name, value in {**parts, "labels right": float(right)}.items():
            sums[name] += value * len(batch_groups) / len(groups)
    return dict(sums)


def device_named(name: str) -> str:
    """Returns the name of a device; raises UserError if it does not exist."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA raises AssertionError
        raise UserError(f"device {name!r}: {str(error).splitlines()[0]}") from None
    return chosen


def _write(value: Any, path: Path) -> None:  # noqa: ANN401 -- any value that torch can save
    part = path.with_suffix(".part")
    torch.save(value, part)
    part.replace(path)
