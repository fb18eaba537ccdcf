"""Words as coco-caption takes them: Stanford's Penn Treebank tokenizer, without punctuation."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from leporello.metrics.coco.java import LineProcess, coco_program

# As in ptbtokenizer.py. Brackets stay: they come in lower case, as `-lrb-`.
_BRACKETS_AND_QUOTES = ("''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-")
_PUNCTUATION = frozenset((*_BRACKETS_AND_QUOTES, ".", "?", "!", ",", ":", "-", "--", "...", ";"))
_LINE_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")  # the program would answer two lines
_KEPT = 64  # answers with their references: each is asked for once a metric

# The program's answers leave it by blocks of 8192 bytes: behind each text goes a line that ends
# the question, and one that fills the block.
_END = "end"
_FILLER = "leporello" * 2000


@lru_cache(maxsize=_KEPT)
def coco_words(*texts: str) -> tuple[str, ...]:
    """Returns the words of each text, lower case, parted by single blanks.

    The official script gives the program all texts at once; here each is a line of its own, so
    that it says the same whatever stands beside it.

    Raises:
        RuntimeError: The program ended, or does not answer line by line.
    """
    program = _program()
    lines = [*(_LINE_BREAK.sub(" ", text) for text in texts), _END]
    *answers, end = program.ask([*lines, _FILLER], len(lines), passing_over=_FILLER)
    if end != _END:
        program.close()
        raise RuntimeError(f"Stanford's tokenizer answered {answers!r:.200} to {texts!r:.80}")
    return tuple(
        " ".join(word for word in answer.split(" ") if word not in _PUNCTUATION)
        for answer in answers
    )


@cache
def _program() -> LineProcess:
    tokenizer = "edu.stanford.nlp.process.PTBTokenizer"
    options = ["-preserveLines", "-lowerCase"]
    return coco_program("tokenizer", "-cp", "stanford-corenlp-3.4.1.jar", tokenizer, *options)
