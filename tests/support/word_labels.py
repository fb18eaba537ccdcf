"""Reader that learns words for each label, without a network, and a config for it."""

import json

PLUGIN = '''
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from leporello import Output, Read
from leporello.core.protocols import ModelSource


@dataclass(frozen=True)
class Words:
    """Answers with the label whose training texts contain the words of an input most often."""

    model: ModelSource | None = None
    case: bool = True

    def read(self, inputs):
        counts = json.loads((Path(self.model) / "words.json").read_text())
        return [Output(self._answer(counts, read)) for read in inputs]

    def count(self, texts):
        return [len(text.split()) for text in texts]

    def learn(self, inputs, targets, directory):
        counts = {label: Counter() for label in sorted(set(targets))}
        for read, label in zip(inputs, targets, strict=True):
            assert all(isinstance(passage, str) for passage in read.passages)
            counts[label].update(" ".join(read.passages).split())
        (directory / "model").mkdir()
        (directory / "model" / "words.json").write_text(json.dumps(counts))
        return {"model": "./model", "case": False}

    def _answer(self, counts, read):
        words = " ".join(getattr(p, "text", p) for p in read.passages).split()
        return max(counts, key=lambda label: sum(counts[label].get(word, 0) for word in words))


@dataclass(frozen=True)
class Ask:
    shown: int = 1

    def combine(self, example, hits):
        outputs = yield [Read((hit.chunk,)) for hit in hits]
        return outputs[0].text

    def supervise(self, example, reads):
        if example.id == "odd":
            raise ValueError("an odd example")
        assert example.references
        return [example.references[0] if n < self.shown else None for n in range(len(reads))]


@dataclass(frozen=True)
class Short(Ask):
    def supervise(self, example, reads):
        return []


@dataclass(frozen=True)
class Broken(Words):
    def learn(self, inputs, targets, directory):
        (directory / "half").write_text("half a model")
        return {"model": 1 / 0}
'''
CONFIG = """
pipelines:
  mine:
    chunker: {class: Lines, size: 3}
    reader: {class: "./plugin.py:Words"}
    combiner: {class: "./plugin.py:Ask"}
    placement: {workers: 0}
  short: {extends: mine, combiner: {class: "./plugin.py:Short"}}
  broken: {extends: mine, reader: {class: "./plugin.py:Broken"}}
  plain: {extends: mine, reader: {class: Lead}}
  joined: {extends: mine, combiner: {class: Refine}}
tasks:
  rows: {class: JsonLines, path: "{split}.jsonl", metrics: [exact_match]}
"""


def row(name: str, text: str, *references: str) -> str:
    """Returns a row as a line of JSON."""
    return json.dumps({"id": name, "document": text, "references": [*references]}) + "\n"
