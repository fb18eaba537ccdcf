"""Conversion of models to CTranslate2's format, with a comparison to the original and a cache.

CTranslate2's converter stores tokens as texts; here the text of a token is its id in digits, so
that no token of any tokenizer is lost or confused with another.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from leporello.core.errors import UserError
from leporello.core.files import at_home
from leporello.models.locate import cache_directory, filled_once, loadable, model_fingerprint
from leporello.readers.backends.decoding import end_tokens
from leporello.readers.backends.pretrained import Architecture, Tokens, load_model, quiet
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_FORMAT = 1  # of the written files; models in another format are converted again
_FACTS = "leporello.json"
# Settings that the converter needs and some models lack: whether layers are normalised before
# attention, and whether embeddings are normalised.
_NORMALISED = {"bart": (False, True), "mbart": (True, True), "pegasus": (True, False)}
# Largest difference of a choice's mean log-probability to the original's: rounding is far below,
# missing or wrongly scaled weights are far above.
# The original is scored in the checkpoint's precision, so the limits differ by precision.
_TOLERANCE = {"float32": 0.01, "bfloat16": 0.5, "float16": 0.5}

_FAULTS = (ValueError, RuntimeError, NotImplementedError, AttributeError, KeyError, TypeError)

_log = logging.getLogger("leporello")

# Scores choices with a loaded model, the original or the converted one.
Score: TypeAlias = Callable[[Any, Tokens, Sequence[ModelInput]], list[Generation]]


@dataclass(frozen=True)
class ModelKind:
    """A kind of model, with functions to compare its conversion with the original.

    Attributes:
        architecture: Class of transformers that loads the original.
        engine: Class of CTranslate2 that runs the converted model.
        types: Names of the tested model types, as in config.json.
        original: Function that scores choices with transformers.
        score: Function that scores choices with CTranslate2.
    """

    architecture: Architecture
    engine: Literal["Translator", "Generator"]
    types: tuple[str, ...]
    original: Score
    score: Score

    def check_type(self, model: str, model_type: object) -> None:
        """Raises ValueError for a model type that CTranslate2 lacks, or that was not tested."""
        if model_type not in self.types:
            raise ValueError(
                f"backend: ctranslate2 does not run {model_type!r}, the type of model {model!r}; it"
                f" runs {', '.join(self.types)}. Omit backend to use transformers"
            )


@dataclass(frozen=True)
class ModelFacts:
    """Special tokens of a model, from its settings.

    Attributes:
        vocabulary: Number of ids that the model has.
        ends: Ids that end a text; the first one is that of the model.
        start: First token of the decoder of an encoder-decoder.
        first: First token of every text; None lets the model choose it.
        last: Token that ends a text of maximum length.
        wraps: Whether the last token of a target is also the decoder's first one.
    """

    vocabulary: int
    ends: tuple[int, ...]
    start: int | None
    first: int | None
    last: int | None
    wraps: bool


def conversion(model: str, kind: ModelKind, load: Callable[[Path], Any]) -> Path:
    """Returns the folder with a model in CTranslate2's format; converts it at most once.

    The name of the folder depends on the model's content and on the versions of the libraries.

    Args:
        model: Path, hub id, or name of a wheel.
        kind: Required kind of the model.
        load: Function that loads a folder, for the comparison with the original.

    Raises:
        UserError: The model does not exist, has no safetensors, or cannot be converted.
    """
    # A newer converter may fix or break a model, so it must convert and compare again.
    versions = version("ctranslate2"), version("transformers")
    identity = json.dumps([model_fingerprint(model), *versions, _FORMAT]).encode()
    name = f"{Path(model).name}-ctranslate2-{sha256(identity).hexdigest()[:16]}"
    try:
        return filled_once(name, lambda folder: _fill(folder, model, kind, load))
    except OSError as error:
        raise UserError(
            f"model {model!r} cannot be converted for CTranslate2 in {cache_directory()}:"
            f" {error.strerror or error}; set LEPORELLO_CACHE to use another folder"
        ) from error


def config_of(model: str) -> dict[str, Any]:
    """Returns the settings of a model in a folder; empty for other models."""
    file = at_home(model) / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a hub id, or an error that loading the model reports
        return {}
    return config if isinstance(config, dict) else {}


def _fill(folder: Path, model: str, kind: ModelKind, load: Callable[[Path], Any]) -> None:
    _log.info("converting %s for CTranslate2, once", model)
    try:
        _convert(folder, model, kind, load)
    except _FAULTS as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"model {model!r} cannot be converted for CTranslate2: {error}."
            " Omit backend to use transformers"
        ) from error
    for file in folder.iterdir():
        # Other processes use the folder at the same time, so nobody may change it.
        file.chmod(0o444)


def facts_of(folder: Path) -> ModelFacts:
    """Returns the stored facts about a converted model."""
    values = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    return ModelFacts(**{**values, "ends": tuple(values["ends"])})


def _convert(folder: Path, model: str, kind: ModelKind, load: Callable[[Path], Any]) -> None:
    converter = _converter(model, kind)
    with quiet():
        converter.convert(str(folder))
    facts: ModelFacts = converter.facts
    (folder / _FACTS).write_text(json.dumps(asdict(facts), indent=2), encoding="utf-8")
    # Compared, since converters silently misread Flan-T5 and mT5 (decision 18).
    replies = kind.score(load(folder), Tokens(model), [_sample(facts)])
    pairs = zip(replies[0].scores, converter.expected[0].scores, strict=True)
    error = max(abs(a - b) for a, b in pairs)
    if not error <= _TOLERANCE[converter.dtype]:  # also true for NaN
        raise ValueError(
            "the mean log-probability of a text differs from that of the original model by"
            f" {error:.2g}"
        )


def _sample(facts: ModelFacts) -> ModelInput:
    """Returns a prompt with choices, for the comparison of a model with its conversion."""

    def ids(count: int, step: int) -> tuple[int, ...]:
        # From 3 on, past the usual special tokens; large steps reach all parts of the vocabulary.
        return tuple(3 + i * step % (facts.vocabulary - 4) for i in range(count))

    # mBART ends a target with the decoder's first token, all other models with the end token.
    last = facts.start if facts.wraps and facts.start is not None else facts.ends[0]
    return ModelInput(ids(160, 7919), tuple((*ids(5, step), last) for step in (101, 977)))


def _converter(model: str, kind: ModelKind) -> Any:  # noqa: ANN401 -- a class of CTranslate2, which has no types
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]  # as above
        """Loads the model as readers do: complete, from safetensors, without remote code."""

        facts: ModelFacts
        expected: list[Generation]
        dtype: str

        def load_model(self, *_: object, **__: object) -> PreTrainedModel:
            # Not from the cache, since the converter changes the model.
            # `auto` keeps the checkpoint's precision; 8 bits are made later, from the same folder.
            loaded: PreTrainedModel = load_model.__wrapped__(
                model, kind.architecture, "auto", "cpu"
            )
            kind.check_type(model, loaded.config.model_type)
            self.facts = _facts(loaded)
            self.dtype = str(loaded.dtype).removeprefix("torch.")
            self.expected = kind.original(loaded, Tokens(model), [_sample(self.facts)])
            _prepare(loaded.config)
            self._config = loaded.config
            return loaded

        def load_tokenizer(self, *_: object, **__: object) -> _Ids:
            return _Ids(self._config, self.facts)

        def _load(self) -> Any:  # noqa: ANN401 -- as above
            spec = super()._load()
            epsilon = getattr(self._config, "layer_norm_epsilon", None)
            # Some converters leave this setting empty; then the value of the config counts.
            spec.config.layer_norm_epsilon = spec.config.layer_norm_epsilon or epsilon
            if self.facts.start is not None and self._config.model_type != "marian":
                spec.config.decoder_start_token = str(self.facts.start)
            return spec

    return Converter(loadable(model))


def _facts(model: PreTrainedModel) -> ModelFacts:
    settings, config = model.generation_config, model.config
    assert settings is not None
    if not (ends := end_tokens(settings)):
        raise ValueError("it has no end token")
    reach = getattr(config, "sliding_window", None)
    # A prompt longer than the window would get other answers, without any error.
    if reach is not None and reach < config.max_position_embeddings:
        raise ValueError("its sliding-window attention differs from that of CTranslate2")
    if config.model_type == "marian" and config.pad_token_id != config.vocab_size - 1:
        raise ValueError("its padding is not its last token")
    start = settings.decoder_start_token_id
    start = settings.bos_token_id if start is None else start
    return ModelFacts(
        # Marian's last id is padding, which is never an input in CTranslate2.
        vocabulary=config.vocab_size - (config.model_type == "marian"),
        ends=ends,
        start=start if config.is_encoder_decoder else None,
        first=settings.forced_bos_token_id,
        last=settings.forced_eos_token_id,
        wraps=config.model_type == "mbart",
    )


def _prepare(config: Any) -> None:  # noqa: ANN401 -- attributes differ between models
    """Adds settings for the converter that transformers 5 removed."""
    if norms := _NORMALISED.get(config.model_type):
        config.normalize_before, config.normalize_embedding = norms
    if config.model_type in ("t5", "mt5"):  # the converter takes "tied", always true, for "scaled"
        config.tie_word_embeddings = getattr(config, "scale_decoder_outputs", False)


class _Ids:
    """Replaces the tokenizer in the converter: the text of each token is its id in digits."""

    # Texts are digits, so holes and doubles of a tokenizer cannot shift any id (decision 18).
    unk_token, unk_token_id = "0", 0
    special_tokens_map: Mapping[str, Any] = {}
    chat_template = None

    def __init__(self, config: Any, facts: ModelFacts) -> None:  # noqa: ANN401 -- as above
        self.size = config.vocab_size
        # The converter removes Marian's padding by this name.
        self.names = {self.size - 1: "<pad>"} if config.model_type == "marian" else {}
        self.eos_token = str(facts.ends[0])
        self.bos_token = str(facts.ends[0] if facts.start is None else facts.start)
        self.pad_token = self.bos_token

    def get_vocab(self) -> dict[str, int]:
        return {self.convert_ids_to_tokens(i): i for i in range(self.size)}

    def convert_ids_to_tokens(self, token: int) -> str:
        return self.names.get(token, str(token))
