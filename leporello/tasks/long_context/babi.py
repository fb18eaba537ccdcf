"""Stories of bAbI, read from its files or generated for its first three tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.files import Stamp, stamp

PERSONS = ("Daniel", "John", "Mary", "Sandra")
ITEMS = ("apple", "football", "milk")
MADE = ("qa1", "qa2", "qa3")
_FIELDS = 3  # of a line with a question: question, answer, numbers of facts


@dataclass(frozen=True, slots=True)
class Story:
    """Facts in order, a question, its answer, and the numbers from 0 of the facts that prove it."""

    facts: tuple[str, ...]
    question: str
    answer: str
    proof: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stories:
    """The stories of a file, one per question."""

    stories: tuple[Story, ...]
    sha256: str


def stories(folder: Path, name: str, split: str) -> Stories:
    """Reads a file such as `qa1_single-supporting-fact_train.txt`, in the given folder or below.

    Raises:
        UserError: No file or several files match.
        ConfigError: Lines do not have bAbI's format.
    """
    files = sorted(folder.rglob(f"{name}_*_{split}.txt"))
    if len(files) != 1:
        more = f"{files[0]} and {files[1]}" if files else f"no {name}_*_{split}.txt below {folder}"
        advice = ", or set `facts: made`" if name in MADE else ""
        raise UserError(
            f"task babilong/{name}: there is {more}; unpack the folder en-10k of bAbI's"
            f" tasks_1-20_v1-2 there{advice}"
        )
    return _read(files[0], stamp(files[0]))


@lru_cache(maxsize=4)
def _read(path: Path, stamp: Stamp) -> Stories:  # noqa: ARG001 -- a changed file is read again
    content = path.read_bytes()
    content_stories = tuple(_stories(path, content.decode("utf-8", "replace")))
    if not content_stories:
        raise UserError(f"{path}: contains no question")
    return Stories(content_stories, hashlib.sha256(content).hexdigest())


def _stories(path: Path, text: str) -> Iterator[Story]:
    facts: dict[str, str] = {}
    for line, row in enumerate(text.splitlines(), 1):
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
        yield Story((*facts.values(),), question.strip(), fields[0], numbers)


def generate(name: str, places: tuple[str, ...], chance: Random) -> Story:
    """Returns a story on a person's place (qa1), an item's (qa2), or its earlier place (qa3)."""
    story = _StoryBuilder(places, chance)
    if name == "qa1":
        for _ in range(2 * chance.randint(1, 5)):
            story.move(chance.choice(PERSONS))
        person = chance.choice([*story.places_of])
        place, fact = story.places_of[person]
        return Story(tuple(story.facts), f"Where is {person}?", place, (fact,))
    person, item = chance.choice(PERSONS), chance.choice(ITEMS)
    for _ in range(chance.randint(0, 4)):
        story.move(chance.choice(PERSONS))
    story.move(person)
    pickup = story.add(f"{person} got the {item} there.")
    path = [story.places_of[person]]
    for _ in range(chance.randint(1, 3)):
        story.move(chance.choice([name for name in PERSONS if name != person]))
        path.append(story.move(person))
    if chance.random() < 0.5 and name == "qa2":  # noqa: PLR2004 -- half of the items are dropped
        drop = story.add(f"{person} dropped the {item}.")
        story.move(person)
        proof: tuple[int, ...] = (path[-1][1], drop)
    else:
        proof = (pickup, path[-1][1])
    if name == "qa2":
        return Story(tuple(story.facts), f"Where is the {item}?", path[-1][0], proof)
    question = f"Where was the {item} before the {path[-1][0]}?"
    return Story(tuple(story.facts), question, path[-2][0], (pickup, path[-2][1], path[-1][1]))


class _StoryBuilder:
    def __init__(self, places: tuple[str, ...], chance: Random) -> None:
        self.facts: list[str] = []
        self.places_of: dict[str, tuple[str, int]] = {}
        self._places, self._chance = places, chance

    def add(self, fact: str) -> int:
        """Adds a fact, and returns its number."""
        self.facts.append(fact)
        return len(self.facts) - 1

    def move(self, person: str) -> tuple[str, int]:
        """Moves a person, and returns the new place and the number of the fact."""
        current = self.places_of.get(person, ("", 0))[0]
        place = self._chance.choice([place for place in self._places if place != current])
        verb = self._chance.choice(("went to", "moved to", "travelled to", "journeyed to"))
        self.places_of[person] = (place, self.add(f"{person} {verb} the {place}."))
        return self.places_of[person]
