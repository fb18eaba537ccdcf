"""Separates the reasoning of a model from its answer."""

from __future__ import annotations

import re

# The marks of DeepSeek and Qwen, Claude, Gemini, Seed, Kimi and Mistral.
_MARK = r"<(?i:think(?:ing)?|thoughts?|reason(?:ing)?|seed:think)>|◁think▷|\[THINK\]"
_OPENING = re.compile(rf"\s*({_MARK})")
_CLOSING = re.compile(_MARK.replace("<", "</").replace("◁", "◁/").replace("\\[", "\\[/"))
# A message of OpenAI's harmony: its channel, and perhaps a recipient and a form, before the text.
_MESSAGE = re.compile(
    r"<\|channel\|>\s*+(\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>(.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
# The same without its special tokens.
_BARE = re.compile(r"analysis(.*?)assistantfinal(.*)", re.DOTALL)


def split_reasoning(text: str) -> tuple[str, str]:
    """Returns the reasoning in a model's text, and the answer.

    Reasoning is between the marks of a model before the answer, or in the channels of OpenAI's
    harmony other than `final`. Some chat templates end with the first mark, so only the second one
    is in the text. A text without the second one has an empty answer.
    """
    if messages := _MESSAGE.findall(text):
        thoughts, answers = (
            [content.strip() for channel, content in messages if (channel == "final") is is_final]
            for is_final in (False, True)
        )
        return "\n".join(thoughts), "\n".join(answers)
    if bare := _BARE.fullmatch(text.strip()):
        return bare[1].strip(), bare[2].strip()
    return _split_marks(text)


def _split_marks(text: str) -> tuple[str, str]:
    thoughts, at = list[str](), 0
    while opening := _OPENING.match(text, at):
        mark = opening[1].lower()
        closings = _CLOSING.finditer(text, opening.end())
        closing = next((c for c in closings if c[0].lower() == f"{mark[0]}/{mark[1:]}"), None)
        thoughts.append(text[opening.end() : closing.start() if closing else None].strip())
        at = closing.end() if closing else len(text)
    closing = None if thoughts else _CLOSING.search(text)
    # An answer may quote the marks; only a mark without an opening one ends the reasoning.
    if closing and not re.search(_MARK, text[: closing.start()]):
        thoughts, at = [text[: closing.start()].strip()], closing.end()
    return "\n".join(filter(None, thoughts)), text[at:].strip() if thoughts else text
