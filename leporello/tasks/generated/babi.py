"""bAbI's stories: from its files, or of the first three kinds made here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from leporello.core.errors import ConfigError, Fault, UserError

PERSONS = ("Daniel", "John", "Mary", "Sandra")
ITEMS = ("apple", "football", "milk")
MADE = ("qa1", "qa2", "qa3")
_FIELDS = 3  # of a line that asks: question, answer, numbers of facts


@dataclass(frozen=True, slots=True)
class Story:
    """Facts in order, a question, and which facts answer it, by their numbers from 0."""

    facts: tuple[str, ...]
    question: str
    answer: str
    proof: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stories:
    """A story a question of a file."""

    stories: tuple[Story, ...]
    sha256: str


def stories(folder: Path, name: str, split: str) -> Stories:
    """Reads `qa1_single-supporting-fact_train.txt` and the like, wherever below a folder.

    Raises:
        UserError: There is no such file, or several.
        ConfigError: Lines that are none of bAbI's.
    """
    found = sorted(folder.rglob(f"{name}_*_{split}.txt"))
    if len(found) != 1:
        more = f"{found[0]} and {found[1]}" if found else f"no {name}_*_{split}.txt below {folder}"
        made = ", or say `facts: made`" if name in MADE else ""
        raise UserError(
            f"task babilong/{name}: there is {more}; unpack the folder en-10k of bAbI's"
            f" tasks_1-20_v1-2 there{made}"
        )
    return _read(found[0], found[0].stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, stamp: int) -> Stories:  # noqa: ARG001 -- a changed file is read again
    content = path.read_bytes()
    read = tuple(_stories(path, content.decode("utf-8", "replace")))
    if not read:
        raise UserError(f"{path}: asks nothing")
    return Stories(read, hashlib.sha256(content).hexdigest())


def _stories(path: Path, text: str) -> Iterator[Story]:
    facts: dict[str, str] = {}
    for line, row in enumerate(text.splitlines(), 1):
        number, _, said = row.strip().partition(" ")
        if not said:
            continue
        if number == "1":
            facts = {}
        question, *told = said.split("\t")
        if not told:
            facts[number] = said
            continue
        proof = told[-1].split()
        if len(told) != _FIELDS - 1 or not {*proof} <= facts.keys():
            fault = "is not `NUMBER QUESTION<tab>ANSWER<tab>NUMBERS OF FACTS` as bAbI has it"
            raise ConfigError([Fault(path, line, fault)])
        places = [*facts]
        numbers = tuple(places.index(each) for each in proof)
        yield Story((*facts.values(),), question.strip(), told[0], numbers)


def made(name: str, places: tuple[str, ...], chance: Random) -> Story:
    """Returns a story of our own: who is where, where is what, where was it before.

    Args:
        name: `qa1`, `qa2` or `qa3`.
        places: Places that there are, two at least.
        chance: Generator that it is drawn with.
    """
    teller = _Teller(places, chance)
    if name == "qa1":
        for _ in range(2 * chance.randint(1, 5)):
            teller.goes(chance.choice(PERSONS))
        who = chance.choice([*teller.where])
        place, fact = teller.where[who]
        return Story(tuple(teller.facts), f"Where is {who}?", place, (fact,))
    who, item = chance.choice(PERSONS), chance.choice(ITEMS)
    for _ in range(chance.randint(0, 4)):
        teller.goes(chance.choice(PERSONS))
    teller.goes(who)
    taken = teller.says(f"{who} got the {item} there.")
    path = [teller.where[who]]
    for _ in range(chance.randint(1, 3)):
        teller.goes(chance.choice([other for other in PERSONS if other != who]))
        path.append(teller.goes(who))
    if chance.random() < 0.5 and name == "qa2":  # noqa: PLR2004 -- as often as not it is left behind
        dropped = teller.says(f"{who} dropped the {item}.")
        teller.goes(who)
        proof: tuple[int, ...] = (path[-1][1], dropped)
    else:
        proof = (taken, path[-1][1])
    if name == "qa2":
        return Story(tuple(teller.facts), f"Where is the {item}?", path[-1][0], proof)
    asked = f"Where was the {item} before the {path[-1][0]}?"
    return Story(tuple(teller.facts), asked, path[-2][0], (taken, path[-2][1], path[-1][1]))


class _Teller:
    def __init__(self, places: tuple[str, ...], chance: Random) -> None:
        self.facts: list[str] = []
        self.where: dict[str, tuple[str, int]] = {}
        self._places, self._chance = places, chance

    def says(self, fact: str) -> int:
        """Returns the number of a new fact."""
        self.facts.append(fact)
        return len(self.facts) - 1

    def goes(self, who: str) -> tuple[str, int]:
        """Returns where somebody goes now, and the number of the fact that says so."""
        here = self.where.get(who, ("", 0))[0]
        place = self._chance.choice([place for place in self._places if place != here])
        verb = self._chance.choice(("went to", "moved to", "travelled to", "journeyed to"))
        self.where[who] = (place, self.says(f"{who} {verb} the {place}."))
        return self.where[who]
