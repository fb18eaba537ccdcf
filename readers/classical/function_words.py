"""English function words: how often they come tells an author more than a topic."""

from __future__ import annotations

_LISTED = """
a about above after again against all almost along also although always am among an and
another any are around as at away back be because been before began behind being below
beneath beside between beyond both but by came can could did do does done down during each
either else enough even ever every few first for from get go got had has have having he her
here hers herself him himself his how however i if in indeed into is it its itself just knew
know last least less like little many may maybe me might mine more most much must my myself
near neither never no nobody none nor not nothing now of off often oh on once one only onto
or other ought our ours ourselves out over own perhaps quite rather said same saw say see
seemed seen several shall she should since so some something sometimes soon still such than
that the their theirs them themselves then there therefore these they this those though
thought through thus till to together too toward towards two under unless until up upon us
very was we well went were what when where whether which while who whom whose why will with
within without would yes yet you your yours yourself
"""

# Closed classes, the auxiliaries, and a few adverbs and verbs of saying that are as frequent.
FUNCTION_WORDS: tuple[str, ...] = tuple(_LISTED.split())
