"""A model by one word: what reads with it, and what such a reader is given.

A word is a path, a hub id, the name of a model that comes along, `SERVICE:MODEL`, `SERVER:MODEL`,
or a server's address. Weights are told by their JSON alone: neither torch nor a model is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import UserError, did_you_mean
from leporello.models.locate import EMBEDDED, hub_file, is_quantised, known_on_hub, locate, shown
from leporello.models.servers import SERVERS, ServedModel, served, window_of

Scalar: TypeAlias = str | int | None

_SERVICES: Mapping[str, Mapping[str, Scalar]] = {
    "openai": {
        "base_url": "https://api.openai.com/v1",
        "api_key": "$OPENAI_API_KEY",
        "max_tokens_field": "max_completion_tokens",
    },
    "anthropic": {
        "base_url": "https://api.anthropic.com/v1",
        "api_key": "$ANTHROPIC_API_KEY",
        "mode": "messages",
    },
}
# Later ones of both services draw as they like, and refuse to be told a temperature.
_TAKES_TEMPERATURE = re.compile(r"gpt-(3|4)|claude-(2|3|\w+-4)")
_WRITTEN = 1024  # tokens of an answer at most, reasoning included
_SERVICE_WINDOW = 16_000  # tokens that any model of theirs reads
_LONGEST = 8192  # tokens of a window in this process, unless the user wants more
_HEAD = 2**16  # bytes of a GGUF file that the size of its window stands in
_CONTEXT = re.compile(rb"\.context_length\x04\0\0\0(....)", re.DOTALL)  # 4 is a uint32
_POSITIONS = ("max_position_embeddings", "n_positions", "max_encoder_position_embeddings", "n_ctx")
_SHIPPED = {"leporello-en": "Embedded", "leporello-style": "PairClassifier"}
_ALIASES = {"embedded": "leporello-en"}
# What reads with models of an architecture, by the end of its name; the first, unless a pipeline
# has another of them. Nothing does by itself where the first is empty.
_READERS: Mapping[str, tuple[str, ...]] = {
    "ForQuestionAnswering": ("Extractive",),
    "ForCausalLM": ("CausalLM", "LogLikelihood"),
    "LMHeadModel": ("CausalLM", "LogLikelihood"),
    "ForMaskedLM": ("", "PseudoLogLikelihood", "LateInteractionClassifier"),
    "ForSequenceClassification": ("", "PairClassifier", "Classifier"),
}
_WRITERS = ("ForConditionalGeneration", "MTModel", "ForSeq2SeqLM", "ForImageTextToText")
_EMBEDS = "an encoder that embeds texts, for retrievers"
_SAYS = (
    "a model is the path of a folder or GGUF file, a hub id (OWNER/NAME), {}, openai:MODEL,"
    " anthropic:MODEL, {} or the address of a server (http://HOST/v1, http://HOST/v1#MODEL)"
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """What a word means.

    Attributes:
        readers: Names of the reader classes that read with it, the fitting one first; that is empty
            if none does unless a pipeline names it, and there are none if nobody can tell.
        parameters: Values of the parameters that tell such a reader the model.
        window: Number of tokens of question, passages and answer together; None if not known.
        kind: Description of the model, for messages.
        written: Number of tokens of an answer at most; 0 leaves it to the reader.
    """

    readers: tuple[str, ...]
    parameters: Mapping[str, Scalar]
    window: int | None = None
    kind: str = ""
    written: int = 0


def is_served(word: str) -> bool:
    """Says whether a word means a model behind a server."""
    return word.startswith(("http://", "https://")) or word.partition(":")[0] in {
        *_SERVICES,
        *SERVERS,
    }


def resolve(word: str, *, ask: bool = True) -> NamedModel:
    """Returns what a word means.

    Args:
        word: Word as the user gave it.
        ask: Whether the server or the hub may be asked what it has.

    Raises:
        UserError: It means nothing, or nothing that is there.
    """
    word = _ALIASES.get(word, word)
    prefix, _, name = word.partition(":")
    if prefix in _SERVICES:
        return _of_service(prefix, name)
    if is_served(word):
        return _of_server(word, ask=ask)
    if ":" in word and not Path(word).drive and not _exists(word):
        hint = did_you_mean(prefix, (*_SERVICES, *SERVERS))
        raise UserError(f"model {shown(word)}: there is no kind of model {shown(prefix)}{hint}")
    return _local(word, ask=ask)


def _of_service(prefix: str, name: str) -> NamedModel:
    if not name or not name.isprintable() or " " in name:
        raise UserError(f"model {shown(f'{prefix}:{name}')}: name the model, {prefix}:MODEL")
    settings: dict[str, Scalar] = {"model": name, **_SERVICES[prefix]}
    if not _TAKES_TEMPERATURE.match(name):
        settings["temperature"] = None
    return NamedModel(("Endpoint",), settings, _SERVICE_WINDOW, written=_WRITTEN)


def _of_server(word: str, *, ask: bool) -> NamedModel:
    prefix, _, name = word.partition(":")
    server = SERVERS.get(prefix)
    if server is None:
        base_url, _, name = word.partition("#")
    else:
        base_url = server.base_url
    if not ask:
        if not name:
            raise UserError(f"model {shown(word)}: name the model too, {word.rstrip(':')}#MODEL")
        return _endpoint(base_url, ServedModel(name))
    models = served(base_url, prefix if server else "")
    if not name and len(models) == 1:
        chosen = models[0]
    else:
        chosen = next((m for m in models if m.name in (name, f"{name}:latest")), ServedModel(""))
    if not chosen.name:
        names = [model.name for model in models]
        which = did_you_mean(name, names) if name else f"; it has: {', '.join(names) or 'none'}"
        raise UserError(f"model {shown(word)}: the server at {base_url} has no such model{which}")
    window = chosen.window or window_of(base_url, prefix if server else "", chosen.name)
    return _endpoint(base_url, ServedModel(chosen.name, window))


def _endpoint(base_url: str, model: ServedModel) -> NamedModel:
    settings: dict[str, Scalar] = {"base_url": base_url, "model": model.name}
    if known_on_hub(model.name, "tokenizer.json"):  # as vLLM names what it serves
        settings["tokenizer"] = model.name
    written = min(_WRITTEN, model.window // 2) if model.window else _WRITTEN
    return NamedModel(("Endpoint",), settings, model.window, written=written)


# -- models in this process ------------------------------------------------------------------------


def _local(word: str, *, ask: bool) -> NamedModel:
    if word in _SHIPPED:
        return NamedModel((_SHIPPED[word], "Polarity", "Precedence"), {"model": word})
    try:
        place = Path(locate(word))
        found = local_model(place) if place.exists() else _of_hub(word, ask=ask)
    except UserError as error:
        raise UserError(f"{error}; {_likely(word)}{_allowed()}") from error
    return NamedModel(found.readers, {"model": word}, found.window, found.kind)


def _of_hub(model: str, *, ask: bool) -> NamedModel:
    config = hub_file(model, "config.json", fetch=ask)
    if config is None:
        raise UserError(
            f"model {model!r} is not on this machine, so nobody can tell what reads with it; fetch"
            " it, or say `class` beside `model`"
        )
    tokenizer = None
    with suppress(UserError):  # it says little that the other does not
        tokenizer = hub_file(model, "tokenizer_config.json", fetch=ask)
    return _described(_json(config), _json(tokenizer))


def local_model(place: Path) -> NamedModel:
    """Returns what reads with the weights at a place, by the JSON that lies there.

    Raises:
        UserError: It has none.
    """
    if place.suffix == ".gguf" and place.is_file():
        with place.open("rb") as file:
            told = _CONTEXT.search(file.read(_HEAD))
        window = min(int.from_bytes(told[1], "little"), _LONGEST) if told else None
        return NamedModel(_READERS["ForCausalLM"], {}, window, "GGUF weights")
    if (place / "model.skops").exists():
        reader = str(_json(place / "settings.json").get("reader", ""))
        return NamedModel((reader,) if reader else (), {}, None, "a model that was trained here")
    if next(place.glob("*/weights.*"), None):  # as recipes write a folder of parts
        return NamedModel(("Embedded", "Polarity", "Precedence"), {}, None, "parts of Embedded")
    if is_quantised(place):
        return NamedModel(("",), {}, None, _EMBEDS)
    if not (place / "config.json").exists():
        raise UserError(f"model {shown(str(place))}: no model lies there (it has no config.json)")
    if (place / "modules.json").exists():
        return NamedModel(("",), {}, None, _EMBEDS)
    return _described(_json(place / "config.json"), _json(place / "tokenizer_config.json"))


def _described(config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> NamedModel:
    architecture = next(iter(config.get("architectures") or ()), "")
    if not architecture or "model_type" not in config:
        return NamedModel((), {}, None, "a model of no known architecture")
    inner = config.get("text_config")
    sizes = [part[n] for part in (config, inner or {}) for n in _POSITIONS if part.get(n)]
    limits = [*sizes, tokenizer.get("model_max_length")]
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    if config.get("model_type") in ("t5", "mt5", "longt5"):  # whose positions are relative
        known = [config.get("n_positions") or 512]
    window = min(*known, _LONGEST) if known else None
    return NamedModel(_readers_of(architecture, config), {}, window, f"a {architecture}")


def _readers_of(architecture: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    if architecture.endswith(_WRITERS):  # those that see images too have no encoder of texts
        return ("Seq2Seq",) if config.get("is_encoder_decoder") else _READERS["ForCausalLM"]
    fitting = (readers for end, readers in _READERS.items() if architecture.endswith(end))
    return next(fitting, ("", "LateInteractionClassifier"))


def _json(path: Path | None) -> dict[str, Any]:
    if path is None or not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}") from None
    return content if isinstance(content, dict) else {}


def _exists(word: str) -> bool:
    with suppress(OSError, ValueError):
        return Path(word).exists()
    return False


def _likely(word: str) -> str:
    """Returns what was likely meant by a word that nothing has."""
    service = next((s for s, m in (("openai", "gpt-"), ("anthropic", "claude")) if m in word), "")
    if service and "/" not in word:
        return f"did you mean {f'{service}:{word}'!r}; "
    near = did_you_mean(word, EMBEDDED).partition("; allowed")[0]
    if near.startswith("; did"):
        return f"{near.removeprefix('; ')}; "
    plain = re.fullmatch(r"[\w.:-]{1,80}", word) and not word.endswith(".gguf")
    return f"a server's model is named with it, as {f'ollama:{word}'!r}; " if plain else ""


def _allowed() -> str:
    return _SAYS.format(", ".join(EMBEDDED), ", ".join(f"{name}:MODEL" for name in SERVERS))
