"""Where answers are lost: what became of each example's proof, from stage to stage."""

from leporello.funnel.fate import ANSWERED, STAGES, Cover, Fate, Finished, fate_of
from leporello.funnel.gold import Gold, gold_of
from leporello.funnel.tally import Funnel, Step, funnels, tally
from leporello.funnel.walk import answer_metric, fates

__all__ = [
    "ANSWERED",
    "STAGES",
    "Cover",
    "Fate",
    "Finished",
    "Funnel",
    "Gold",
    "Step",
    "answer_metric",
    "fate_of",
    "fates",
    "funnels",
    "gold_of",
    "tally",
]
