"""Folds letters and digits that readers take for the same, for comparison.

Folded texts have other lengths than the originals.
"""

import re
import unicodedata

import regex

# In texts of these Latin letters and punctuation, only the letter case differs. Left out are
# invisible characters, digits such as `²`, and ligatures.
NOT_LATIN = re.compile(
    "[^\x00-\xa9\xab\xac\xae-\xb1\xb4-\xb8\xbb\xbf-\u012f\u0131\u0134-\u013e\u0141-\u01c3\u01cd-\u01ef"
    "\u01f4-\u024f\u2010-\u2016\u2018-\u2029\u202f-\u203d\u203f-\u205f]"
)
# Soft hyphens, zero-width blanks and other characters that readers do not see.
_INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
# Accents without a letter, and trade marks: their expansion would join the word beside them.
_SIGN = regex.compile(r"[\p{Sk}™℠]")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def composed(text: str) -> str:
    """Returns a text with one form (NFKC) per letter and digit, without invisible characters."""
    if not NOT_LATIN.search(text):
        return text
    visible = _SIGN.sub(" ", _INVISIBLE.sub("", text))
    compatible = unicodedata.normalize("NFKC", visible)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), compatible)


def folded(text: str) -> str:
    """Returns a composed text in lower case, as terms and names are compared."""
    return composed(text).casefold()
