"""Separates the reasoning of a model, and special tokens, from its answer."""

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
_TURN = (
    r"<\|(?:im_start|start_header_id|start|assistant|START_RESPONSE|begin_of_box)\|>"
    r"|<start_of_turn>|<s>|<bos>"
)
_BEGIN = re.compile(rf"\s*+(?:(?:{_TURN})(?:assistant|model)?(?:<\|end_header_id\|>)?\s*+)+")
# The end of a turn, and other turns that a server did not stop.
_END = re.compile(
    r"(?:<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|return|eos|END_OF_TURN_TOKEN"
    r"|END_RESPONSE|end_of_box)\|>"
    rf"|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>)(?:\s*(?:{_TURN}|<\||</s>).*)?\s*\Z",
    re.DOTALL,
)
_COHERE = {"<|START_THINKING|>": "<think>", "<|END_THINKING|>": "</think>"}


def split_reasoning(text: str) -> tuple[str, str]:
    """Returns the reasoning in a model's text, and the answer without special tokens.

    Reasoning is between the marks of a model before the answer, or in the channels of OpenAI's
    harmony other than `final`. Some chat templates end with the first mark, so only the second one
    is in the text. A text without the second one has an empty answer.
    """
    for mark, usual in _COHERE.items():
        text = text.replace(mark, usual)
    if begin := _BEGIN.match(text):
        text = text[begin.end() :]
    if messages := _MESSAGE.findall(text):
        thoughts, answers = (
            [content.strip() for channel, content in messages if (channel == "final") is is_final]
            for is_final in (False, True)
        )
        return "\n".join(thoughts), _ended("\n".join(answers))
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
    return "\n".join(filter(None, thoughts)), _ended(text[at:].strip() if thoughts else text)


def _ended(answer: str) -> str:
    """Returns an answer without the tokens and marks around it."""
    if begin := _BEGIN.match(answer):
        answer = answer[begin.end() :]
    if (end := _END.search(answer)) is not None:
        answer = answer[: end.start()].rstrip()
    # `</s>` may also close a text that is struck out.
    if "<s>" not in answer and answer.rstrip().endswith("</s>"):
        pieces = answer.split("</s>")
        last = max((n for n, piece in enumerate(pieces) if piece.strip()), default=0)
        answer = "</s>".join(pieces[: last + 1]).rstrip()
    return answer
