"""Pretrained models and tokenizers, loaded once per process and without output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.models.locate import loadable
from leporello.models.weights import disable_pickle_conversion, refuse_pickles, refused_code
from leporello.readers.prompting.template import encodable

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig, PreTrainedConfig, PreTrainedModel

# Function that fine-tunes the models of all readers; see `FineTunes`.
TRAINER = "leporello.readers.training.fine_tuning:tune"
DType: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
Architecture: TypeAlias = Literal[
    "AutoModel",
    "AutoModelForCausalLM",
    "AutoModelForMaskedLM",
    "AutoModelForQuestionAnswering",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
]

# Command that converts a model with pickled weights, at a path or on the hub, to safetensors.
CONVERT = (
    "from transformers import {0} as M, AutoTokenizer as T; place = {1!r}; new = 'converted';"
    " M.from_pretrained(place).save_pretrained(new); T.from_pretrained(place).save_pretrained(new)"
)

# Types of models whose positions begin after that of padding.
_SHIFTED = ("camembert", "longformer", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl")


class Tokens:
    """A model's tokenizer for any string, without truncation or warnings.

    A control token in a document (`</s>`, `<|im_end|>`) is read as plain text.
    """

    def __init__(self, model: str, prompt: str = "") -> None:
        """Loads the tokenizer; control tokens in `prompt` keep their meaning, also in documents."""
        require(f"model {model!r}", "transformers")
        from transformers import AutoTokenizer

        self.model, self._prompt = model, prompt
        with faults_explained(model), quiet():
            location = loadable(model)
            self.tokenizer: Any = AutoTokenizer.from_pretrained(location, trust_remote_code=False)

    def encode(self, text: str, special: bool = True) -> tuple[int, ...]:
        """Returns the ids, with or without the special tokens for the ends of an input."""
        return self._ids(self.plain(text), add_special_tokens=special)

    def sliced(self, text: str, behind: str, limit: int) -> tuple[tuple[int, ...], int]:
        """Returns the first tokens of a text with all of a second one, and the end of the first.

        Without a second text, the tokenizer truncates, with special tokens at both ends. Otherwise
        both texts are tokenized separately, each with special tokens, as ZeroSCROLLS' authors do.
        """
        # Slow tokenizers cannot map tokens to characters, and a cut is a place in the text.
        if not self.tokenizer.is_fast:
            raise ValueError("on_overflow 'slice' needs a fast tokenizer, which returns offsets")
        tail = self.encode(behind) if behind else ()
        if len(tail) > limit:
            raise ValueError(f"the text after the cut has {len(tail)} tokens; the limit is {limit}")
        truncation = {} if behind else {"truncation": True, "max_length": limit}
        encoding = self.tokenizer(
            self.plain(text), return_offsets_mapping=True, **truncation, **self._options
        )
        ids, offsets = encoding["input_ids"], encoding["offset_mapping"]
        length = limit - len(tail)
        return (*ids[:length], *tail), max((end for _, end in offsets[:length]), default=0)

    def encode_target(self, text: str) -> tuple[int, ...]:
        """Returns the ids that an encoder-decoder is trained to generate for this text."""
        return self._ids(text_target=self.plain(text))

    def _ids(self, *texts: str, **options: Any) -> tuple[int, ...]:  # noqa: ANN401 -- the tokenizer's
        return tuple(self.tokenizer(*texts, **options, **self._options)["input_ids"])

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, without special tokens."""
        return [len(self.encode(text, special=False)) for text in texts]

    def plain(self, text: str) -> str:
        """Returns a text with a space in each control token, so that the model reads it as text."""
        return self._control.sub(lambda match: f"{match[0][0]} {match[0][1:]}", encodable(text))

    @cached_property
    def _control(self) -> re.Pattern[str]:
        """Pattern of the control tokens that the tokenizer does not split in spite of its options.

        SentencePiece has some of them as words, and a prompt with a control token needs the
        options off.
        """
        ids = self.tokenizer.convert_tokens_to_ids
        unsplit = [
            token
            for token in self._special
            if token not in self._prompt
            if ids(token) in self._ids(token, add_special_tokens=False)
        ]
        longest_first = sorted(unsplit, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    @cached_property
    def _special(self) -> list[str]:
        return [t.content for t in self.tokenizer.added_tokens_decoder.values() if t.special]

    @cached_property
    def _options(self) -> dict[str, bool]:
        is_in_prompt = any(token in self._prompt for token in self._special)
        return {"split_special_tokens": not is_in_prompt, "verbose": False}

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of these ids without special tokens and leading white space."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text.lstrip()

    @cached_property
    def padding(self) -> int:
        """An id for padding; any is suitable, since padding is masked."""
        ids = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0)
        return next(int(i) for i in ids if i is not None)


@lru_cache(maxsize=1)  # readers that differ only in prompt or input window share the model
def load_model(
    model: str, architecture: Architecture, dtype: DType, device: str
) -> PreTrainedModel:
    """Returns a model; raises UserError if it cannot be loaded, or lacks safe weights."""
    require(f"model {model!r}", "torch", "transformers")
    import torch

    loaded: PreTrainedModel
    loaded, missing = read_weights(model, architecture, dtype=dtype)
    refuse_incomplete(model, loaded, missing)
    with faults_explained(model):
        loaded = loaded.to(_device(device)).eval()  # type: ignore[arg-type]  # its decorator hides the signature
    if loaded.config.model_type == "marian":  # which could generate padding as a token
        # Without it, the probabilities would be wrong too (decision 18).
        loaded.get_buffer("final_logits_bias")[..., loaded.config.pad_token_id] = -torch.inf
    if loaded.can_generate():
        loaded.generation_config = _bare_generation_config(loaded.generation_config)
    return loaded


def read_weights(
    model: str,
    architecture: Architecture,
    **options: Any,  # noqa: ANN401 -- options of transformers
) -> tuple[PreTrainedModel, list[str]]:
    """Returns a model and its missing weights; reads only safetensors, and runs no remote code."""
    import transformers

    disable_pickle_conversion()
    with faults_explained(model), quiet():
        location = loadable(model)
        refuse_pickles(model, [Path(location)], CONVERT.format(architecture, location))
        loaded, report = getattr(transformers, architecture).from_pretrained(
            location,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    return loaded, sorted(report["missing_keys"])


def refuse_incomplete(model: str, network: PreTrainedModel, missing: Sequence[str]) -> None:
    """Raises `UserError` for a model that lacks weights."""
    if missing:
        raise UserError(
            f"model {model!r} lacks weights that {type(network).__name__} needs ({missing[0]}"
            f" and {len(missing) - 1} more): it was trained for another task; choose another model"
        )


def _bare_generation_config(config: Any) -> GenerationConfig:  # noqa: ANN401 -- untyped
    """Returns only how a model's sequences begin and end."""
    from transformers import GenerationConfig

    # A checkpoint's beams or penalties would change answers without any parameter (decision 18).
    ids = {name: ids for name, ids in config.to_dict().items() if name.endswith("_token_id")}
    return GenerationConfig(**ids)  # type: ignore[no-untyped-call]  # transformers leaves it untyped


def read_config(model: str) -> PreTrainedConfig:
    """Returns a model's configuration."""
    require(f"model {model!r}", "transformers")
    from transformers import AutoConfig

    with faults_explained(model), quiet():
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            loadable(model), trust_remote_code=False
        )
    return config


def check_positions(
    model: str,
    needed: int,
    names: Sequence[str] = ("max_position_embeddings",),
    parameters: str = "max_input_tokens",
) -> None:
    """Checks that a model has enough positions for the input window."""
    config = read_config(model)
    positions = next((value for name in names if (value := getattr(config, name, None))), None)
    if positions is None:
        return
    if config.model_type in _SHIFTED:
        # RoBERTa counts positions from 2, so 514 of them hold 512 tokens.
        positions -= config.pad_token_id + 1
    if needed > positions:
        raise UserError(
            f"model {model!r} has {positions} positions, but {parameters} needs {needed}:"
            f" lower it by {needed - positions}"
        )


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
        first = str(error).splitlines()[0]
        raise UserError(f"device {name!r}: {first}; 'auto' uses an available device") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers' warnings and progress bars off the terminal."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped


@contextmanager
def faults_explained(model: str) -> Iterator[None]:
    """Turns exceptions of the libraries while loading a model into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the libraries raise any exception for damaged files
        if refused := refused_code(model, error):
            raise refused from error
        first = next(iter(str(error).splitlines()), type(error).__name__)
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise UserError(
            f"model {model!r} could not be loaded: {first}\n"
            "Use the path of a folder with config.json, a tokenizer and *.safetensors, or the"
            f" hub id of such a model; a hub id needs the network or an earlier download{offline}"
        ) from error
