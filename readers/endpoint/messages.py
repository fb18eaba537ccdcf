"""Messages of servers in one form, whatever server and model wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leporello.readers.prompting.reasoning import split_reasoning

# Fields for reasoning in DeepSeek, SGLang and llama.cpp; vLLM, Ollama and OpenRouter; Ollama's own
# protocol; OpenRouter.
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a message.

    Attributes:
        answer: The answer, without reasoning and special tokens; None if the message has no text.
        reasoning: Reasoning before the answer; may be empty.
        refusal: The model's reason to refuse; may be empty.
        tools: Names of the tools that the model called instead of an answer.
    """

    answer: str | None
    reasoning: str
    refusal: str
    tools: tuple[str, ...]

    def has_answer(self, *, is_cut: bool) -> bool:
        """Returns whether the message answers; an empty answer means that the model ended at once.

        Args:
            is_cut: Whether the message ends at the maximum number of tokens.
        """
        is_blank = self.answer is None or not self.answer.strip()
        is_unfinished = self.answer is None or is_cut or self.reasoning or self.tools
        return not (is_blank and is_unfinished)


def message_of(choice: Mapping[str, Any]) -> Message:
    """Returns the message of a choice, as chat or legacy completions have it."""
    message = choice.get("message")
    fields = message if isinstance(message, Mapping) else {"content": choice.get("text")}
    content, refusal = fields.get("content"), fields.get("refusal")
    texts = [*_texts(content, ("text", "output_text"))]
    thoughts, answer = split_reasoning("".join(texts))
    fields_of_reasoning = [_joined(fields.get(name)) for name in _REASONING]
    fields_of_reasoning.append("\n".join(_texts(content, ("thinking", "reasoning"))))
    reasoning = next(filter(None, fields_of_reasoning), thoughts)
    refusals = [refusal] if isinstance(refusal, str) else [*_texts(content, ("refusal",))]
    return Message(answer if texts else None, reasoning, "".join(refusals), (*_tools(fields),))


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
    """Returns a text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(map(_joined, value))
    if isinstance(value, Mapping):
        return _joined(value.get("text")) or _joined(value.get("summary"))
    return value if isinstance(value, str) else ""


def _tools(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    legacy = {"function": message.get("function_call")}
    for call in [*(calls if isinstance(calls, list) else []), legacy]:
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield str(function.get("name") or "unnamed")
