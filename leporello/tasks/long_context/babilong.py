"""BABILong (Kuratov et al. 2024): bAbI's facts, hidden between the sentences of other texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import ClassVar, Literal

from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.files import Stamp, sha256, stamp
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import JSON, Document, Example
from leporello.tasks.long_context.recipes import inserted, trimmed
from leporello.tasks.long_context.sources import background
from leporello.tasks.long_context.templates import Generated, data_of
from leporello.tasks.official.archives import data_directory
from leporello.text.outline import tile
from leporello.text.tokens import tokenizer

_FIELDS = 3  # of a line with a question: question, answer, numbers of facts


@dataclass(frozen=True, slots=True)
class Story:
    """Facts in order, a question, its answer, and the numbers from 0 of the facts that prove it."""

    facts: tuple[str, ...]
    question: str
    answer: str
    proof: tuple[int, ...]


@lru_cache(maxsize=4)
def _read(path: Path, stamp: Stamp) -> list[Story]:  # noqa: ARG001 -- of the cache
    facts, stories = dict[str, str](), list[Story]()
    for line, row in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        number, _, text = row.strip().partition(" ")
        if not text:
            continue
        if number == "1":
            facts = {}
        question, *fields = text.split("\t")
        if not fields:
            facts[number] = text
            continue
        proof = fields[-1].split()
        if len(fields) != _FIELDS - 1 or not {*proof} <= facts.keys():
            fault = "is not bAbI's format `NUMBER QUESTION<tab>ANSWER<tab>NUMBERS OF FACTS`"
            raise ConfigError([Fault(path, line, fault)])
        places = [*facts]
        numbers = tuple(places.index(fact) for fact in proof)
        stories.append(Story((*facts.values(),), question.strip(), fields[0], numbers))
    if not stories:
        raise UserError(f"{path}: contains no question")
    return stories


_PROMPT = 300  # tokens that the authors reserve for the prompt
_FACT = 8  # assumed tokens per fact, by which the authors exclude long stories
_SHORTEST = 10  # least tokens of a sentence of the background


@dataclass(frozen=True)
class Babilong(Generated):
    """A task of BABILong at one length, `qa1` to `qa20`.

    Facts keep their order, between sentences of the background, which starts at a random sentence
    and is repeated if it is too short. The same parameters give the same examples.

    Attributes:
        name: Name of the task in the benchmark.
        length: Approximate number of tokens of prompt and text; the prompt counts as 300. 0 adds no
            background.
        tokenizer: Tokenizer that counts tokens: `words`, or a Hugging Face tokenizer by path or hub
            id; the authors use GPT-2's.
        samples: Number of examples, limited by the questions in the file.
        seed: Random seed.
        background: File, or folder of texts, whose sentences of at least ten tokens surround the
            facts; the authors use the books of PG-19's test split. None uses the noise of RULER.
        split: Split of bAbI's files; the authors use `train`.
        data: Directory of the benchmarks' files, with bAbI's files, such as
            `qa1_single-supporting-fact_train.txt`, below `babilong`. None means `LEPORELLO_DATA` or
            `data`.
    """

    benchmark: ClassVar[str] = "babilong"
    metrics: ClassVar[tuple[str, ...]] = ("babilong_accuracy", "recall")

    name: Literal[
        "qa1", "qa2", "qa3", "qa4", "qa5", "qa6", "qa7", "qa8", "qa9", "qa10", "qa11", "qa12",
        "qa13", "qa14", "qa15", "qa16", "qa17", "qa18", "qa19", "qa20",
    ]  # fmt: skip
    length: Count = 4000
    tokenizer: ModelSource = "words"
    samples: Positive = 100
    seed: int = 42
    background: Path | None = None
    split: str = "train"
    data: Path | None = None

    def __len__(self) -> int:
        return min(self.samples, len(self._chosen()))

    def _sources(self) -> list[JSON]:
        return [sha256(self._file), background(self.background, data_of("ruler")["noise"]).sha256]

    def example(self, number: int) -> Example:
        """Returns an example by its number from 0."""
        chance = Random(f"{self.seed}/{self.name}/{number}")
        story = self._stories[self._chosen()[number]]
        haystack = self._background(chance, story) if self._room else []
        places = sorted(chance.choices(range(len(haystack) + 1), k=len(story.facts)))
        parts, indexes = inserted(haystack, story.facts, places)
        text, spans = tile(parts, " ")
        task = data_of("babilong", self.name)
        head = "\n\n".join(task[part] for part in ("instruction", "examples", "post_prompt"))
        query = f"Question: {story.question}"
        prompt = OfficialPrompt(f"{head}\n\n<context>\n", "\n</context>\n\n", query)
        name = f"{self.name}-{number}"
        return Example(
            name,
            Document(name, text),
            question=story.question,
            instruction=head,
            references=(story.answer,),
            evidence=trimmed(parts, spans, (indexes[fact] for fact in story.proof)),
            metadata={**prompt.metadata(), "gold": {"labels": task["labels"]}},
        )

    @property
    def _room(self) -> int:
        return max(0, self.length - _PROMPT)

    @property
    def _file(self) -> Path:
        folder, name = data_directory(self.data) / "babilong", f"{self.name}_*_{self.split}.txt"
        files = sorted(folder.rglob(name))
        if len(files) == 1:
            return files[0]
        more = f"{files[0]} and {files[1]}" if files else f"no {name} below {folder}"
        unpack = "unpack the folder en-10k of bAbI's tasks_1-20_v1-2 there"
        raise UserError(f"task babilong/{self.name}: there is {more}; {unpack}")

    @property
    def _stories(self) -> list[Story]:
        return _read(self._file, stamp(self._file))

    def _chosen(self) -> list[int]:
        """Returns the numbers of the stories that are short enough, in random order."""
        most = self._room // _FACT
        numbered = enumerate(self._stories)
        short = [n for n, story in numbered if not most or len(story.facts) < most]
        Random(f"{self.seed}/{self.name}").shuffle(short)
        return short

    def _background(self, chance: Random, story: Story) -> list[str]:
        """Returns sentences whose tokens, with those of the facts, fill the length."""
        count = tokenizer(self.tokenizer).offsets
        room = self._room - sum(len(count(fact)) for fact in story.facts)
        sentences = _sentences(self.background, self.tokenizer)
        chosen, index = [], chance.randrange(len(sentences))
        while room > 0:
            sentence, size = sentences[index % len(sentences)]
            chosen.append(
                sentence[: int(count(sentence)[room - 1][1])] if size > room else sentence
            )
            room, index = room - size, index + 1
        return chosen


@lru_cache(maxsize=4)
def _sentences(path: Path | None, name: str) -> list[tuple[str, int]]:
    """Returns the sentences of a background that are long enough, with their tokens."""
    count = tokenizer(name).offsets
    sized = [(s, len(count(s))) for s in background(path, data_of("ruler")["noise"]).sentences]
    # The noise of RULER has only short sentences.
    return [pair for pair in sized if pair[1] >= _SHORTEST] or sized
