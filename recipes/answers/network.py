"""Network and loss: an encoder with a head for spans and a head for the labels of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from recipes.answers.windows import LABELS, Group

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SPAN = LABELS.index("span")
_NOWHERE = -1e4


@dataclass(frozen=True)
class WindowBatch:
    """Windows as tensors, padded to one length."""

    ids: Tensor  # token ids, (windows, length)
    types: Tensor  # zero for the question, one for the text
    mask: Tensor  # one for tokens, zero for padding
    text: Tensor  # true for the tokens of the text
    starts: Tensor  # true for the first token of each answer
    ends: Tensor  # true for the last token of each answer
    labels: Tensor  # label of each window
    groups: Tensor  # number of each window's group


class AnswerNetwork(nn.Module):
    """Scores every token of a window as start and end of the answer, and the labels of the window.

    The first `frozen` layers are not trained.
    """

    def __init__(self, encoder: PreTrainedModel, frozen: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.has_types = getattr(encoder.config, "type_vocab_size", 0) > 1
        # Word vectors are not trained, since most words are too rare to learn anything.
        encoder.get_input_embeddings().requires_grad_(False)
        if frozen:
            encoder.get_submodule("embeddings").requires_grad_(False)
        for layer in self._layers()[:frozen]:
            layer.requires_grad_(False)
        self.span = nn.Linear(encoder.config.hidden_size, 2)
        self.label = nn.Linear(encoder.config.hidden_size, len(LABELS))
        for head in (self.span, self.label):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits of starts and ends (windows, length, 2), and of labels (windows, 4).

        `types` are 0 for the question and 1 for the text, `mask` is 1 for tokens and 0 for padding.
        """
        extra = {"token_type_ids": types.long()} if self.has_types else {}
        encoded = self.encoder(input_ids=ids.long(), attention_mask=mask.long(), **extra)
        states = encoded.last_hidden_state
        return self.span(states), self.label(states[:, 0])

    def _layers(self) -> nn.ModuleList:
        count = self.encoder.config.num_hidden_layers
        lists = (part for part in self.encoder.modules() if isinstance(part, nn.ModuleList))
        return next(part for part in lists if len(part) == count)


def collate(groups: Sequence[Group], special: tuple[int, int], device: str = "cpu") -> WindowBatch:
    """Returns the windows of groups as tensors.

    `special` are the ids of the token at the beginning of a window, and of the token after each
    part.
    """
    cls, sep = special
    windows = [(number, window) for number, group in enumerate(groups) for window in group]
    shape = (len(windows), max(len(window) for _, window in windows))
    ids, types, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    text, starts, ends = (torch.zeros(shape, dtype=torch.bool) for _ in range(3))
    for row, (_, window) in enumerate(windows):
        first, length = len(window.question) + 2, len(window)
        ids[row, :length] = torch.tensor([cls, *window.question, sep, *window.text, sep])
        mask[row, :length] = 1
        types[row, first:length] = 1
        text[row, first : length - 1] = True
        starts[row, [first + place for place in window.starts]] = True
        ends[row, [first + place for place in window.ends]] = True
    labels = torch.tensor([window.label for _, window in windows])
    numbers = torch.tensor([number for number, _ in windows])
    tensors = (ids, types, mask, text, starts, ends, labels, numbers)
    return WindowBatch(*(tensor.to(device) for tensor in tensors))


def hardest(batch: WindowBatch, spans: Tensor, count: int) -> WindowBatch:
    """Returns the windows with an answer, and each group's others with the highest scores.

    `spans` are logits of starts and ends, (windows, length, 2).
    """
    scores = spans.masked_fill(~batch.text[..., None], _NOWHERE).amax(dim=1).sum(dim=1)
    kept = []
    for group in torch.unique(batch.groups):
        rows = (batch.groups == group).nonzero()[:, 0]
        lacking = rows[batch.labels[rows] == 0]
        best = scores[lacking].argsort(descending=True)[:count]
        kept += [rows[batch.labels[rows] != 0], lacking[best]]
    chosen = torch.cat(kept)
    parts = (getattr(batch, part.name)[chosen] for part in fields(batch))
    return WindowBatch(*parts)


def loss_of(
    logits: tuple[Tensor, Tensor], batch: WindowBatch, window: float, label: float
) -> tuple[Tensor, dict[str, float]]:
    """Returns the loss of a batch, and its parts.

    In the part *group*, the tokens of all windows of a question compete to be start and end. In
    *window*, the tokens of one window compete with its first token, which is right if the window
    has no span. *label* is the loss of the windows' labels. If several tokens are right, their
    probabilities are summed. `window` and `label` are the weights of these parts.
    """
    spans, labels = logits
    candidates = batch.text.clone()
    candidates[:, 0] = True
    has_no_span = batch.labels != _SPAN
    group_losses, window_losses = [], []
    for side, targets in enumerate((batch.starts, batch.ends)):
        scores = spans[..., side].float()
        window_targets = targets.clone()
        window_targets[has_no_span, 0] = True
        window_losses.append(
            (_log_sum(scores, candidates) - _log_sum(scores, window_targets)).mean()
        )
        group_losses.append(
            _over_groups(_log_sum(scores, batch.text), batch.groups)
            - _over_groups(_log_sum(scores, targets), batch.groups)
        )
    answered = torch.unique(batch.groups[~has_no_span])
    # Batches with only yes/no questions have no group part.
    both = (group_losses[0] + group_losses[1])[answered] / 2
    parts = {
        "group": both.mean() if len(answered) else labels.sum() * 0,
        "window": (window_losses[0] + window_losses[1]) / 2,
        "label": cross_entropy(labels.float(), batch.labels),
    }
    total = parts["group"] + window * parts["window"] + label * parts["label"]
    return total, {name: float(part.detach()) for name, part in parts.items()}


def _log_sum(logits: Tensor, places: Tensor) -> Tensor:
    """Returns the log-sum-exp of the logits at some tokens of each window."""
    return logits.masked_fill(~places, _NOWHERE).logsumexp(dim=1)


def _over_groups(values: Tensor, groups: Tensor) -> Tensor:
    """Returns the log-sum-exp of the values of each group's windows."""
    spread = values.new_full((int(groups.max()) + 1, len(values)), _NOWHERE)
    return spread.scatter(0, groups[None, :], values[None, :]).logsumexp(dim=1)
