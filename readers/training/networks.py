"""Models as fine-tuning needs them: with a new head where they lack one, or with additions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.training import Training
from leporello.models.locate import loadable
from leporello.models.safety import keep_token_here, refuse_pickles
from leporello.readers.backends.pretrained import CONVERT, Architecture, faults_explained, quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WITH_HEADS = ("AutoModelForQuestionAnswering", "AutoModelForSequenceClassification")


def load_network(
    model: str, architecture: Architecture, seed: int, labels: Sequence[str] = ()
) -> PreTrainedModel:
    """Returns a model in float32; what it lacks is drawn.

    Args:
        model: Path, hub id, or name of a wheel.
        architecture: The auto class that knows such models.
        seed: Seed of the draw.
        labels: Classes; the model gets a new head for them unless its own knows them all.

    Raises:
        UserError: It cannot be loaded, or lacks more than a head.
    """
    import torch
    import transformers

    keep_token_here()
    with faults_explained(model), quiet():
        location = loadable(model)
        refuse_pickles(model, [Path(location)], CONVERT.format(architecture, location))
        config = transformers.AutoConfig.from_pretrained(location, trust_remote_code=False)
        if labels and not set(labels) <= set((config.id2label or {}).values()):
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: number for number, label in enumerate(labels)}
        transformers.set_seed(seed)
        loader = getattr(transformers, architecture)
        loaded: PreTrainedModel
        loaded, report = loader.from_pretrained(
            location,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            trust_remote_code=False,
        )
    _check_missing(model, loaded, report["missing_keys"], architecture in _WITH_HEADS)
    return loaded


def _check_missing(
    model: str, network: PreTrainedModel, missing: Iterable[str], may_lack_head: bool
) -> None:
    """Refuses a model that lacks more than what stands on top of it."""
    body = f"{network.base_model_prefix}."
    lacking = sorted(
        name
        for name in missing
        if not may_lack_head or (name.startswith(body) and "pooler" not in name)
    )
    if lacking:
        raise UserError(
            f"model {model!r} lacks weights that {type(network).__name__} needs ({lacking[0]} and"
            f" {len(lacking) - 1} more): it was made for another task; choose another model"
        )


def load_checkpoint(architecture: Architecture, folder: Path) -> PreTrainedModel:
    """Returns the model of a checkpoint."""
    import transformers

    with quiet():
        loader = getattr(transformers, architecture)
        loaded: PreTrainedModel = loader.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False
        )
    return loaded


def with_additions(network: PreTrainedModel, settings: Training) -> Any:  # noqa: ANN401 -- peft's model
    """Returns the model with low-rank additions, which alone are trained.

    Raises:
        UserError: peft is not installed, or the model has no layers of these names.
    """
    require("lora_rank", "peft")
    import peft

    # A new head must be learnt whole: there is nothing of it to add to.
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
