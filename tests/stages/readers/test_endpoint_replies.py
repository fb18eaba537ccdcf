"""Tests of the reader Endpoint with the replies of servers, as their documentation shows them."""

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from endpoint_server import Request, endpoint, reads, running

from leporello.core.errors import UserError
from leporello.readers.endpoint.responses import EndpointError
from leporello.readers.prompting.reasoning import split_reasoning

Fields = Mapping[str, Any]
CALL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
PARTS = [{"type": "text", "text": "Mrs. "}, {"type": "text", "text": "Pell"}]
HARMONY = (
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Mrs. Pell"
)


COMMAND = "<|START_THINKING|>Hm.<|END_THINKING|>"


def chat(content: Any, reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **fields}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}


def legacy(text: str | None, reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "finish_reason": reason, **fields}
    return {"id": "1", "object": "text_completion", "choices": [choice]}


def asked(reply: Fields, mode: Literal["chat", "completions"] = "chat") -> tuple[str, str | None]:
    """Returns the answer and the reasoning that a reader takes from a reply of a server."""

    def script(request: Request) -> None:
        request.send(json.dumps(reply).encode())

    with running(script) as server:
        [output] = endpoint(server, mode=mode).read(reads("a"))
    return output.text, output.reasoning


THOUGHT: Mapping[str, Fields] = {
    "OpenAI": chat("Mrs. Pell", refusal=None, annotations=[]),
    "OpenAI, parts": chat(PARTS),
    "Azure": {
        **chat("Mrs. Pell"),
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
    },
    "vLLM": chat("\n\nMrs. Pell", reasoning="Hm.", reasoning_content="Hm.", tool_calls=[]),
    "vLLM, older; DeepSeek": chat("Mrs. Pell", reasoning_content="Hm."),
    "vLLM, without a parser": chat("<think>\nHm.\n</think>\n\nMrs. Pell"),
    "SGLang": {**chat("Mrs. Pell", reasoning_content="Hm.", tool_calls=None), "metadata": {}},
    "llama.cpp": {**chat("Mrs. Pell", reasoning_content="Hm."), "timings": {"prompt_n": 9}},
    "Ollama": {**chat("Mrs. Pell", reasoning="Hm."), "system_fingerprint": "fp_ollama"},
    "Ollama, thinking": chat("Mrs. Pell", thinking="Hm."),
    "TGI": {**chat("Mrs. Pell"), "object": "", "model": "m", "system_fingerprint": "3.3"},
    "OpenRouter": chat(
        "Mrs. Pell", reasoning="Hm.", reasoning_details=[{"type": "reasoning.text", "text": "Hm."}]
    ),
    "OpenRouter, summary": chat(
        "Mrs. Pell", reasoning_details=[{"type": "reasoning.summary", "summary": "Hm."}]
    ),
    "Mistral": chat(
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "Mrs. Pell"},
        ]
    ),
    "no reason": chat("Mrs. Pell", None),
    "cut off": chat("Mrs. Pell", "length"),
    "legacy text in a chat": legacy("Mrs. Pell"),
}


@pytest.mark.parametrize("server", THOUGHT)
def test_answers_of_servers_are_taken_without_reasoning(server: str) -> None:
    answer, reasoning = asked(THOUGHT[server])
    assert answer == "Mrs. Pell"
    assert reasoning == ("Hm." if "Hm." in json.dumps(THOUGHT[server]) else None)


def test_legacy_completions_are_normalised_too() -> None:
    for text, fields in ((" Mrs. Pell\n", {"logprobs": None}), ("<think>Hm.</think>Mrs. Pell", {})):
        reply = {**legacy(text, "length", **fields), "usage": None}
        assert asked(reply, "completions")[0] == "Mrs. Pell"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (chat(None), "has no text"),
        (chat([]), "has no text"),
        (chat("", reasoning_content="Mrs. Pell"), "has no text .*raise max_new_tokens"),
        (chat("", reasoning="Mrs. Pell"), "has no text .*raise max_new_tokens"),
        (chat(None, "length", reasoning="Mrs."), "has no text .*raise max_new_tokens"),
        (chat("<think>Mrs. Pell", "length"), "has no text .*raise max_new_tokens"),
        (chat("<thinking>Mrs. Pell", "stop"), "has no text .*raise max_new_tokens"),
        (chat("<|channel|>analysis<|message|>Mrs. Pell<|end|>"), "has no text"),
        (chat([{"type": "thinking", "thinking": "Mrs. Pell"}]), "has no text"),
        (chat("", "tool_calls", tool_calls=[CALL]), "has no text"),
        (chat(None, "tool_calls", tool_calls=[CALL]), "has no text .*tool_calls"),
        (
            chat(None, "function_call", function_call={"name": "search", "arguments": "{}"}),
            "has no text .*function_call",
        ),
        (chat(None, refusal="I cannot."), "the model refused: I cannot."),
        (chat([{"type": "refusal", "refusal": "I cannot."}]), "the model refused: I cannot."),
        (chat("Mrs.", "content_filter"), "content filter withheld"),
        (chat(None, "content_filter"), "content filter withheld"),
        (chat(" \n", "length"), "raise max_new_tokens"),
        (chat(3), "has no text"),
        ({**chat(""), "choices": [{"message": {}}]}, "has no text"),
        ({**chat(""), "choices": [{}]}, "has no text"),
        ({**legacy("", "length"), "usage": {"prompt_tokens": 12}}, "has no text"),
    ],
)
def test_replies_without_an_answer_fail_their_input(reply: Fields, message: str) -> None:
    replies = []

    def script(request: Request) -> None:
        replies.append(request)
        request.send(json.dumps(reply).encode())

    with running(script) as server:
        reader = endpoint(server, budget_tokens=12)
        with pytest.raises(EndpointError, match=message):
            reader.read(reads("a"))
        with pytest.raises(UserError, match="is spent"):
            reader.read(reads("b"))
    assert len(replies) == 1


PROVIDER = {"code": 502, "message": "Provider failed"}
OVERLOADED: Mapping[str, tuple[Fields, str]] = {
    "OpenRouter": ({"error": PROVIDER}, "502: Provider failed"),
    "OpenRouter, choice": (
        {"choices": [{"error": PROVIDER, "message": {"content": "M"}}]},
        "broke the answer off .*Provider failed",
    ),
    "OpenRouter, reason": (chat("Mrs.", "error"), "broke the answer off"),
    "DeepSeek": (chat("Mrs.", "insufficient_system_resource"), "broke the answer off"),
    "SGLang": (chat("Mrs.", "abort"), "broke the answer off"),
    "TGI": ({"error": "Model is overloaded", "error_type": "overloaded"}, "Model is overloaded"),
    "Ollama": ({"error": "model 'm' is being loaded"}, "model 'm' is being loaded"),
    "llama.cpp": (
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        "503: Loading model",
    ),
}


@pytest.mark.parametrize("server", OVERLOADED)
def test_errors_in_successful_responses_are_asked_again(server: str) -> None:
    """Their status is 200, since the server found the error too late; the next answer counts."""
    reply, message = OVERLOADED[server]

    def script(request: Request) -> None:
        is_first = request.times == 1 or request.prompt == "always"
        request.send(json.dumps(reply if is_first else chat("Mrs. Pell")).encode())

    with running(script) as running_server:
        [output] = endpoint(running_server, retries=1).read(reads("a"))
        assert output.text == "Mrs. Pell"
        with pytest.raises(EndpointError, match=message):
            endpoint(running_server, retries=1).read(reads("always"))


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("Mrs. Pell", "", "Mrs. Pell"),
        (" Mrs. Pell ", "", " Mrs. Pell "),
        ("<think>Hm.</think>Mrs. Pell", "Hm.", "Mrs. Pell"),
        ("<Thinking>Hm.</Thinking>\nMrs. Pell", "Hm.", "Mrs. Pell"),
        ("<reasoning>Hm.</reasoning>Mrs. Pell", "Hm.", "Mrs. Pell"),
        ("[THINK]Hm.[/THINK]Mrs. Pell", "Hm.", "Mrs. Pell"),
        ("<thought>Hm.</thought>Mrs. Pell", "Hm.", "Mrs. Pell"),  # Gemini
        ("Hm.</think>\n\nMrs. Pell", "Hm.", "Mrs. Pell"),  # a template with the first mark
        ("◁think▷Hm.◁/think▷Mrs. Pell", "Hm.", "Mrs. Pell"),  # Kimi
        (f"{COMMAND}<|START_RESPONSE|>Mrs. Pell<|END_RESPONSE|>", "Hm.", "Mrs. Pell"),
        ("<think>Hm.</think><|begin_of_box|>Mrs. Pell<|end_of_box|>", "Hm.", "Mrs. Pell"),  # GLM
        ("<think></think>\n\nMrs. Pell", "", "Mrs. Pell"),
        ("<think>a</think><think>b</think>Mrs. Pell", "a\nb", "Mrs. Pell"),
        ("<think>a <b>c</b></think>Mrs. Pell", "a <b>c</b>", "Mrs. Pell"),
        ("<think>Hm.", "Hm.", ""),
        ("The mark <think> ends with </think>.", "", "The mark <think> ends with </think>."),
        (HARMONY, "Hm.", "Mrs. Pell"),
        (HARMONY + "<|return|>", "Hm.", "Mrs. Pell"),
        ("<|start|>assistant" + HARMONY + "<|end|>", "Hm.", "Mrs. Pell"),
        ("<|channel|>final<|message|>Mrs. Pell", "", "Mrs. Pell"),
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", "", "{}"),
        ("<|channel|>analysis<|message|>Hm.", "Hm.", ""),
        ("Mrs. Pell<|im_end|>", "", "Mrs. Pell"),
        ("Mrs. Pell <|eot_id|>\n", "", "Mrs. Pell"),
        ("Mrs. Pell<|endoftext|><|endoftext|>", "", "Mrs. Pell"),
        ("Mrs. Pell<end_of_turn>\n", "", "Mrs. Pell"),
        ("<s> Mrs. Pell</s></s>", "", "Mrs. Pell"),
        ("Mrs. Pell<|im_end|>\n<|im_start|>user\nMore?", "", "Mrs. Pell"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nMrs. Pell<|eot_id|>", "", "Mrs. Pell"),
        ("The text is <s>old</s>", "", "The text is <s>old</s>"),
        ("It ends with <|im_end|> in ChatML.", "", "It ends with <|im_end|> in ChatML."),
    ],
)
def test_reasoning_and_tokens_are_split_from_texts(text: str, reasoning: str, answer: str) -> None:
    assert split_reasoning(text) == (reasoning, answer)


@pytest.mark.parametrize(
    "piece", [" ", "<think>", "<|end|>", "</s>", "<|channel|>a<|message|>", "analysis"]
)
def test_repeated_marks_take_linear_time(piece: str) -> None:
    """A text of a single mark is split as fast as others."""
    split_reasoning(piece * (200_000 // len(piece)))
