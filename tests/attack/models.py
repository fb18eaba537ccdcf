"""Names that no model has, and models' folders with damage, for every parameter that names one.

In this process: each ends in one fault that says what is wrong, or does not matter.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from leporello import Pipeline
from leporello.cache.fingerprint import fingerprint
from leporello.config.parameters import parameters
from leporello.core.annotations import MODEL_MARK, marked
from leporello.core.environment.classes import built_ins
from leporello.core.errors import UserError
from leporello.core.protocols import KINDS
from tests.attack.command import scratch

NAME = "models"
_SECONDS = 20.0
_NAMES = (
    "", " ", ".", "..", "/", "//", "/etc", "/etc/passwd", "~", "~nobody", "~nobody/x", "a/b/c",
    "a/b/c/d", "No Such", "no such/model", "https://x/y", "http://127.0.0.1:9/v1", "file:///etc",
    "s3://bucket/key", "x" * 300, "x/" * 200, "/" + "x" * 300, "a\0b", "./a\0b", "/a\0b", "a\nb",
    "\ud800", "../\ud800", "é", "模型", "-", "--", "a--b/c", "a..b", ".hidden", "a/.b", "a/", "/a",
    "*", "?", "%s", "{}", "{0}", "$HOME", "`id`", "$(id)", "a;b", "a b", "a\\b", "C:\\x", "con",
    "null", "None", "0", "-1", "1e9", "true", "words ", "Words", "no-such-model", "no/such-model",
    "x.gguf", "./x.gguf", "/x.gguf", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/fd",
    "leporello_en", "leporello-en ", "openai:", "openai:gpt", "ollama:x", ":", "::", "a:b", "a@b",
)  # fmt: skip


def _kind_of_model(cls: str, parameter: str) -> str:
    """Returns which tiny model a parameter takes."""
    if parameter == "tokenizer":
        return "bert"
    return _MODELS.get(cls, "shipped")


_MODELS = {
    "ColBERT": "colbert", "Dense": "sentences", "LateChunks": "sentences", "Rerank": "bert",
    "Splade": "masked", "CausalLM": "gpt2", "LogLikelihood": "gpt2", "Seq2Seq": "t5",
    "Classifier": "bert", "PairClassifier": "style", "Extractive": "marks",
    "LateInteractionClassifier": "sentences", "PseudoLogLikelihood": "masked",
}  # fmt: skip


@cache
def _model(kind: str) -> Path:
    """Returns a tiny real model, made once."""
    import tiny_encoders
    import tiny_models

    place = scratch() / "models" / kind
    if kind in ("shipped", "style"):
        ours = Path(__file__).parents[2] / "leporello/readers/embedded/shipped"
        shutil.copytree(ours / "style" if kind == "style" else ours, place)
    elif kind == "colbert":
        tiny_models.save_token_vectors(scratch() / "models/parts")
        shutil.move(scratch() / "models/parts/colbert", place)
    elif kind == "sentences":
        from sentence_transformers import SentenceTransformer

        SentenceTransformer(str(_model("bert"))).save_pretrained(str(place))
    elif kind == "masked":
        tiny_models.save_sparse(place)
    elif kind == "marks":
        tiny_encoders.save("bert", place)
    elif kind == "bert":
        tiny_models.save_classifier("bert", place, ["near"])
    else:
        tiny_models.save(kind, place)
    return place


def _removed(file: Path) -> None:
    file.unlink()


def _cut(share: float) -> Callable[[Path], None]:
    def cut(file: Path) -> None:
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * share)])

    return cut


def _written(data: bytes) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        file.write_bytes(data)

    return write


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _circle(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def _flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    data[min(len(data) - 1, 9)] ^= 0xFF
    file.write_bytes(data)


def _with(**settings: Any) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **settings}), "utf-8")

    return change


def _reshaped(file: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(file)
    save_file({name: array.reshape(-1)[:-1].copy() for name, array in weights.items()}, file)


def _fewer(file: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(file)
    save_file({name: weights[name] for name in [*weights][::2]}, file)


_ANY: Mapping[str, Callable[[Path], None]] = {
    "removed": _removed, "emptied": _written(b""), "cut in half": _cut(0.5), "cut": _cut(0.99),
    "a folder": _folder, "flipped": _flipped, "a circle of links": _circle, "a pipe": _pipe,
    "zeros": _written(bytes(5000)),
}  # fmt: skip
_JSON: Mapping[str, Callable[[Path], None]] = {
    "a list": _written(b"[]"), "null": _written(b"null"), "{}": _written(b"{}"),
    "a number": _written(b"7"), "not UTF-8": _written(b'{"a": "\xff"}'),
    "deep": _written(b"[" * 100_000),
}  # fmt: skip
_CONFIG: Mapping[str, Callable[[Path], None]] = {
    "an unknown type": _with(model_type="nothing"), "a type that is a number": _with(model_type=7),
    "code of its own": _with(auto_map={"AutoModel": "x.Y", "AutoConfig": "x.Z"}, model_type="own"),
    "other sizes": _with(hidden_size=48, d_model=48, n_embd=48),
    "sizes that are words": _with(hidden_size="a", d_model="a", n_embd="a"),
    "sizes below 0": _with(hidden_size=-1, d_model=-1, n_embd=-1),
    "no heads": _with(num_attention_heads=0, num_heads=0, n_head=0),
    "a small vocabulary": _with(vocab_size=5), "no positions": _with(
        max_position_embeddings=0, n_positions=0
    ),
    "architectures that are a number": _with(architectures=5),
    "a dtype that is none": _with(dtype="int3", torch_dtype="int3"),
}  # fmt: skip
_WEIGHTS: Mapping[str, Callable[[Path], None]] = {
    "of other shapes": _reshaped, "half of them": _fewer, "a huge header": _written(b"\xff" * 64),
}  # fmt: skip


@cache
def _damages(kind: str) -> tuple[tuple[str, str], ...]:
    """Returns what can be done to which file of a model."""
    found = []
    for file in sorted(path for path in _model(kind).rglob("*") if path.is_file()):
        ways = {**_ANY}
        ways |= _JSON if file.suffix == ".json" else {}
        ways |= _CONFIG if file.name == "config.json" and kind not in ("shipped", "style") else {}
        ways |= _WEIGHTS if file.suffix == ".safetensors" else {}
        if file.name != "card.md":
            found += [(str(file.relative_to(_model(kind))), way) for way in ways]
    return tuple(found)


@cache
def _places() -> tuple[tuple[str, str, str], ...]:
    """Returns the kind, class and parameter of every parameter that names a model."""
    return tuple(
        (kind.key, name, parameter.name)
        for kind in KINDS.values()
        for name, cls in built_ins(kind).items()
        for parameter in parameters(cls).values()
        if marked(parameter.annotation, MODEL_MARK)
    )


@dataclass(frozen=True)
class Model:
    """A model that is none, or a damaged one.

    Attributes:
        kind: Kind of stage.
        cls: Its class.
        parameter: The parameter.
        model: Name that is given; empty for that of a damaged folder.
        file: File that is damaged.
        way: Damage.
    """

    kind: str
    cls: str
    parameter: str
    model: str = "./model"
    file: str = ""
    way: str = ""

    @property
    def name(self) -> str:
        """In a line."""
        what = f"{self.file}: {self.way}" if self.way else repr(self.model)
        return f"{self.cls}.{self.parameter}: {what}"

    @property
    def command(self) -> str:
        """On a text of three sentences."""
        return f"leporello ask text.txt '{self._question}' --pipeline mine --config mine.yaml"

    @property
    def _question(self) -> str:
        # Windows around mentions are asked for a name: else nothing is tokenized.
        return "Ann" if self.cls == "MentionWindows" else "Who ate the cake?"

    def run(self, folder: Path) -> str | None:
        """Asks it about a text."""
        if self.way:
            shutil.copytree(_model(_kind_of_model(self.cls, self.parameter)), folder / "model")
            {**_ANY, **_JSON, **_CONFIG, **_WEIGHTS}[self.way](folder / "model" / self.file)
        (folder / "text.txt").write_text("Ann ate the cake. It rains.\n\nThe dog sleeps.")
        stage: dict[str, Any] = {"class": self.cls, self.parameter: self.model}
        if "retriever" in parameters(built_ins(KINDS[self.kind])[self.cls]):
            stage["retriever"] = "BM25"
        stages = {"chunker": "Sentences", "retriever": "BM25", "reader": "BestSentence"}
        config = {"pipelines": {"mine": {**stages, self.kind: stage}}}
        (folder / "mine.yaml").write_text(json.dumps(config))
        began = time.process_time()
        told = self._told(folder)
        if (took := time.process_time() - began) > _SECONDS:
            return f"took {took:.0f} s of computing"
        return told

    def _told(self, folder: Path) -> str | None:
        try:
            pipeline = Pipeline.from_yaml(folder / "mine.yaml", "mine", cached=False)
            for part in ("chunker", "retriever", "reader", "combiner"):
                fingerprint(getattr(pipeline.stages, part))
            if self.cls in ("Polarity", "Precedence"):  # whose questions are others
                pipeline.stages.reader.load()
            else:
                pipeline.answer(folder / "text.txt", self._question)
        except UserError as error:
            return _unclear(error)
        except BaseException as error:
            return f"traceback: {type(error).__name__}: {error}"[:300]
        return None if self.way else "a name of nothing is taken"


def _unclear(error: UserError) -> str | None:
    """Returns what is wrong with a fault: it is that of a library, or says nothing."""
    text = str(error)
    if not text.strip():
        return "refused without a word"
    if type(error.__cause__ or error.__context__).__name__ == "StageError" or "Error:" in text:
        return f"unclear: {text}"[:300]
    return None


def case(random: Random, number: int) -> Model:
    """Names and damage in turn, of each parameter."""
    places = _places()
    kind, cls, parameter = places[number // 2 % len(places)]
    if number % 2 == 0:
        return Model(kind, cls, parameter, random.choice(_NAMES))
    file, way = random.choice(_damages(_kind_of_model(cls, parameter)))
    return Model(kind, cls, parameter, "./model", file, way)
