"""Formulas of LaTeX as text: `1/2`, `10^6`, `≤`."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ARGUMENT = r"\s*+(?:\{([^{}]*)\}|([\w.]))"
FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"})
FRACTION = re.compile(rf"\\(?:{'|'.join(sorted(FRACTIONS))})(?![a-zA-Z]){_ARGUMENT}{_ARGUMENT}")
_BEFORE_SCRIPT = re.compile(r"(?<=\S) (?=[_^]\S)")
_SCRIPT = re.compile(r"([\^_])\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_STYLED = re.compile(
    r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|bb|cal|frak)|mbox|hbox|operatorname\*?"
    r"|boldsymbol|bm|ensuremath)\s*\{([^{}]*)\}"
)
_DEEPEST = 9  # fractions and scripts within each other
_WORD = re.compile(r"\\(?:([a-zA-Z]+)|([,;:! %$&#_{}]))")
_OPERAND = re.compile(r"[-+−]?[\w.,%°√]+(?:\^[-−]?\w+)?|\([^()]*\)")
_POWER = re.compile(r"[-+−]?\w+|\\[a-zA-Z]+|[-+*′]|'+")
_SIGNS = {
    "times": "×", "cdot": "·", "pm": "±", "mp": "∓", "approx": "≈", "sim": "~", "le": "≤",
    "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "to": "→", "rightarrow": "→",
    "leftarrow": "←", "Rightarrow": "⇒", "infty": "∞", "circ": "°", "degree": "°", "ldots": "…",
    "dots": "…", "cdots": "…", "div": "÷", "equiv": "≡", "in": "∈", "sum": "∑", "prod": "∏",
    "int": "∫", "partial": "∂", "quad": " ", "qquad": " ", "left": "", "right": "", "ell": "ℓ",
    "displaystyle": "", "textstyle": "", "log": "log", "ln": "ln", "exp": "exp", "sin": "sin",
    "cos": "cos", "tan": "tan", "min": "min", "max": "max", "prime": "′", "mu": "μ", "percent": "%",
    "ll": "≪", "gg": "≫", "propto": "∝", "mid": "|", "lambda": "λ", "varepsilon": "ε", "euro": "€",
    "lbrace": "{", "rbrace": "}", "hbar": "ħ", "big": "", "Big": "", "bigg": "", "Bigg": "",
}  # fmt: skip
_SPACES = {",": " ", ";": " ", ":": " ", "!": "", " ": " "}


def formula(source: str) -> str:
    """Returns a formula without delimiters, as text; commands that are not known stay."""
    text = source
    for _ in range(_DEEPEST if "\\" in text or "{" in text else 0):
        before = text
        if "\\" in text:
            text = _STYLED.sub(r"\1", text)
            text = _ROOT.sub(lambda m: f"√{_operand(m[1])}", text)
            text = FRACTION.sub(_fraction, text)
        text = _SCRIPT.sub(_script, text)
        if text == before or "{" not in text:
            break
    text = _WORD.sub(_sign, text.replace("~", " ")).replace("^°", "°").replace("^′", "′")
    return _BEFORE_SCRIPT.sub("", " ".join(text.split()))


def _operand(text: str) -> str:
    return text.strip() if _OPERAND.fullmatch(text.strip()) else f"({text.strip()})"


def _fraction(match: re.Match[str]) -> str:
    above, below = match[1] or match[2] or "", match[3] or match[4] or ""
    before = match.string[match.start() - 1] if match.start() else ""
    return f"{' ' * before.isdigit()}{_operand(above)}/{_operand(below)}"  # 2 1/2


def _script(match: re.Match[str]) -> str:
    text = match[2].strip()
    if not _POWER.fullmatch(text):
        text = f"({text})" if text else ""
    return match[1] + text + " " * text.startswith("\\")  # a command ends before a letter


def _sign(match: re.Match[str]) -> str:
    name, sign = match[1], match[2]
    if name is None:
        return _SPACES.get(sign, sign)
    return _SIGNS[name] if name in _SIGNS else _letter(name)


@lru_cache(maxsize=1000)
def _letter(name: str) -> str:
    """Returns a Greek letter by its name; the command for other names."""
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
    except KeyError:
        return f"\\{name}"
