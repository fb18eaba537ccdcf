"""Words as in coco-caption: Stanford's Penn Treebank tokenizer, without punctuation."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from leporello.metrics.coco.java import LineProcess, coco_program

# As in ptbtokenizer.py. Brackets stay, since the tokenizer writes them in lower case: `-lrb-`.
_BRACKETS_AND_QUOTES = ("''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-")
_PUNCTUATION = frozenset((*_BRACKETS_AND_QUOTES, ".", "?", "!", ",", ":", "-", "--", "...", ";"))
_LINE_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")  # otherwise the program answers two lines
_CACHED = 64  # answers with references, since each metric requests the same words

# The program flushes its output in blocks of 8192 bytes: a line after the texts marks the end, and
# another line fills the block.
_END = "end"
_FILLER = "leporello" * 2000


@lru_cache(maxsize=_CACHED)
def coco_words(*texts: str) -> tuple[str, ...]:
    """Returns the words of each text in lower case, separated by single blanks.

    The official script passes all texts at once; here each text is a separate line, so that its
    words do not depend on the other texts.

    Raises:
        RuntimeError: The program ended, or does not answer line by line.
    """
    program = _program()
    lines = [*(_LINE_BREAK.sub(" ", text) for text in texts), _END]
    *answers, end = program.ask([*lines, _FILLER], len(lines), skip=_FILLER)
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
