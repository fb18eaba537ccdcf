"""Messages of servers in one form, and the choices that free texts name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from leporello.readers.prompting.reasoning import split_reasoning

# Fields for reasoning: DeepSeek, SGLang, llama.cpp; vLLM, Ollama, OpenRouter; Ollama; OpenRouter.
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


def message_of(choice: Mapping[str, Any]) -> tuple[str | None, str, str]:
    """Returns answer, reasoning and refusal of a choice, as chat or legacy completions have it.

    The answer is None if the message has no text; the others may be empty.
    """
    message = choice.get("message")
    fields = message if isinstance(message, Mapping) else {"content": choice.get("text")}
    content, refusal = fields.get("content"), fields.get("refusal")
    texts = [*_texts(content, ("text", "output_text"))]
    thoughts, answer = split_reasoning("".join(texts))
    fields_of_reasoning = [_joined(fields.get(name)) for name in _REASONING]
    fields_of_reasoning.append("\n".join(_texts(content, ("thinking", "reasoning"))))
    reasoning = next(filter(None, fields_of_reasoning), thoughts)
    refusals = [refusal] if isinstance(refusal, str) else [*_texts(content, ("refusal",))]
    return answer if texts else None, reasoning, "".join(refusals)


def _texts(content: object, kinds: tuple[str, ...]) -> Iterator[str]:
    """Yields the texts of some kinds of parts; a text is one part of the kind `text`."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str) and "text" in kinds:
            yield part
        elif isinstance(part, Mapping) and part.get("type", "text") in kinds:
            # Mistral's thinking is a list of parts; a refusal has its text under its kind.
            names = ("text", *kinds)
            yield next(filter(None, (_joined(part.get(name)) for name in names)), "")


def _joined(value: object) -> str:
    if isinstance(value, list):
        return "".join(map(_joined, value))
    if isinstance(value, Mapping):
        return _joined(value.get("text")) or _joined(value.get("summary"))
    return value if isinstance(value, str) else ""


# `B`, `(B) a cat`, `B: a cat`; not `A cat`
_LETTER = re.compile(r"\A\W*+([A-Z])(?:\W*\Z|\s*[).:\]*])")
_LETTER_NAMED = re.compile(r"(?i:answer|choice|option)\s*+(?:(?i:is)|:)?+\W*+([A-Z])\b(?!['’])")
_LETTER_ANYWHERE = re.compile(r"\(([A-Z])\)")


def chosen(answers: Sequence[str], choices: Sequence[str]) -> str | None:
    """Returns the choice that most answers name, the first one in a tie; None without a match."""
    indices = [index for answer in answers if (index := _named_choice(answer, choices)) is not None]
    return choices[Counter(indices).most_common(1)[0][0]] if indices else None


def _named_choice(answer: str, choices: Sequence[str]) -> int | None:
    """Returns the choice that an answer names, by its text or by its letter in the prompt.

    Tries readings from the clearest to the least clear; a reading counts only if it is unique.
    """
    texts = [_plain(choice) for choice in choices]
    words = _plain(answer)
    first = answer.strip().partition("\n")[0]
    readings = (
        [index for index, text in enumerate(texts) if text and text == words],
        _letters(_LETTER.findall(first), len(choices)),
        _longest(
            [p for p, text in enumerate(texts) if text and f"{words} ".startswith(f"{text} ")],
            texts,
        ),
        _letters(_LETTER_NAMED.findall(answer)[:1], len(choices)),
        _longest([p for p, text in enumerate(texts) if text and _occurs(words, text)], texts),
        _letters({*_LETTER_ANYWHERE.findall(answer)}, len(choices)),
    )
    # Unclear answers abstain: a guess would be an answer the model did not give (decision 22).
    return next((reading[0] for reading in readings if len(reading) == 1), None)


def _plain(text: str) -> str:
    """Returns the case-folded words, without quotation marks, punctuation and emphasis."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip().casefold()


def _occurs(words: str, text: str) -> bool:
    return f" {text} " in f" {words} "


def _longest(indices: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Removes choices whose text is part of another's, such as `cat` of `the black cat`."""
    return [
        index
        for index in indices
        if not any(
            texts[index] != texts[longer] and _occurs(texts[longer], texts[index])
            for longer in indices
        )
    ]


def _letters(letters: Iterable[str], count: int) -> list[int]:
    return [index for index in map(ascii_uppercase.index, letters) if index < count]
