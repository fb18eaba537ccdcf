"""Tests of the reader Endpoint: its requests, outputs and parameters."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT
from endpoint_server import SECRET, Request, answer, endpoint, reads, reply, running, texts
from row_files import write_rows

from leporello.config import load_config
from leporello.core.records import Document, Output, Read
from leporello.readers import Endpoint
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.endpoint.messages import chosen
from leporello.readers.prompting.prompted_reader import Chat

STORY = "The miller had three sons, a mill, a donkey and a cat. " * 40


def test_a_chat_request_contains_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with running(reply) as server:
        options = {"options": {"seed": 7}, "stop": ("\n",), "max_new_tokens": 5}
        reader = endpoint(server, api_key="$MY_KEY", system="Be brief.", **options)
        [output] = reader.read(reads("hello"))
        [request] = server.requests
    assert output == Output("HELLO", read=(), input_tokens=10, output_tokens=2)
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.body.pop("messages") == [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"},
    ]  # fmt: skip
    sent = {"max_tokens": 5, "temperature": 0.0, "seed": 7, "stop": ["\n"]}
    assert request.body == {"model": "m", **sent}
    assert reader.render(reads("hello")[0]) == "system: Be brief.\n\nuser: hello"


def test_a_completions_request_contains_the_plain_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with running(reply) as server:
        reader = endpoint(
            server, mode="completions", temperature=None, max_tokens_field="max_completion_tokens"
        )
        assert texts(reader.read(reads("hello"))) == ["HELLO"]
        [request] = server.requests
    assert request.path == "/v1/completions"
    assert request.body == {"model": "m", "prompt": "hello", "max_completion_tokens": 64}
    assert SECRET not in str(request.headers)
    assert reader.render(reads("hello")[0]) == "hello"


def test_equal_prompts_are_sent_once() -> None:
    with running(reply) as server:
        reader = endpoint(server)
        first = reader.read(reads("a", "b", "a"))
        second = reader.read(reads("b", "c"))
        assert texts(first + second) == ["A", "B", "A", "B", "C"]
        assert {output.input_tokens for output in first + second} == {10}
        assert server.prompts == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("mode", ["chat", "completions"])
def test_any_text_can_be_sent_and_received(mode: str) -> None:
    odd = "猫は長靴を履いた。🐈👢 Ça y est\u2028 \x00\x7f \ud83d half"
    valid = odd.replace("\ud83d", "\N{REPLACEMENT CHARACTER}")

    def broken(request: Request) -> None:
        text = json.dumps(answer(request, request.prompt)).replace("half", "\\ud83d end")
        request.send(text.encode())

    with running(broken) as server:
        [output] = endpoint(server, mode=mode).read(reads(odd))
        assert server.requests[0].prompt == valid
    assert output.text == valid.replace("half", "\N{REPLACEMENT CHARACTER} end")
    assert output.text.encode()


def test_worked_examples_precede_the_prompt_as_turns_or_as_text(tmp_path: Path) -> None:
    row = {"question": "Who barked?", "context": "The dog barked.", "answer": "the dog"}
    options: dict[str, Any] = {"prompt": "{context}\nQ: {question}\nA:", "seed": 3}
    options["examples"] = write_rows(tmp_path / "examples.jsonl", row)
    read = Read(("He left.",), "Who left?")
    turns = [("user", "The dog barked.\nQ: Who barked?\nA:"), ("assistant", "the dog")]
    turns = [("system", "Be brief."), *turns, ("user", "He left.\nQ: Who left?\nA:")]
    with running(reply) as server:
        reader = endpoint(server, system="Be brief.", **options)
        reader.read([read])
        endpoint(server, mode="completions", **options).read([read])
        chat, plain = server.requests
    assert [(turn["role"], turn["content"]) for turn in chat.body["messages"]] == turns
    assert "seed" not in chat.body
    assert reader.render(read) == "\n\n".join(f"{role}: {content}" for role, content in turns)
    assert plain.prompt == (
        "The dog barked.\nQ: Who barked?\nA: the dog\n\nHe left.\nQ: Who left?\nA:"
    )


def test_passages_that_do_not_fit_are_left_out() -> None:
    """`words` estimates 1.5 tokens per word or one per 3 bytes, and 32 for a chat."""
    document = Document("d", STORY)
    chunks = tuple(document.chunk(start, start + 55) for start in range(0, 550, 55))
    with running(reply) as server:
        reader = endpoint(server, max_input_tokens=32 + 100, prompt="{question} {context}")
        [output] = reader.read([Read(chunks, "Who?")])
        sent = server.requests[0].prompt
        assert reader.count([sent])[0] <= 100 < reader.count([sent + chunks[0].text])[0]
        fitting = reader.fit(Read(chunks, "Who?"))
        assert output.read == tuple(chunk.span for chunk in chunks[:fitting])
        assert output.cut == 55 * (10 - fitting)
        assert reader.count(["a b", "x" * 30, "猫は長靴"]) == [3, 10, 6]


def test_prompts_are_measured_with_the_tokenizer_of_the_model(tmp_path: Path) -> None:
    from tiny_models import save  # imports torch, which is slow

    save("chat", tmp_path / "model")
    place = str(tmp_path / "model")
    tokens = Tokens(place)
    with running(reply) as server:
        for mode, system in (("chat", "Be brief."), ("completions", "")):
            options = {"mode": mode, "system": system, "max_input_tokens": 60}
            reader = endpoint(server, tokenizer=place, **options)
            reader.read(reads(STORY))
            sent = server.requests[-1].prompt
            chat = Chat(tokens, system, ()) if mode == "chat" else tokens
            size = len(chat.encode(sent))
            assert 57 <= size <= 60
            assert reader.count([sent]) == tokens.count([sent])


def test_a_long_input_can_be_split() -> None:
    document = Document("d", STORY)
    with running(lambda request: reply(request, str(len(request.prompt)))) as server:
        reader = endpoint(server, max_input_tokens=32 + 300, on_overflow="split")
        [output] = reader.read([Read((document.chunk(0, len(STORY)),))])
        assert sum(map(int, output.text.split("\n"))) == len(STORY)
        assert output.input_tokens == 10 * len(server.requests)
    spans = list(output.read or ())
    assert len(spans) == len(server.requests) > 2
    assert (spans[0].start, spans[-1].end, output.cut) == (0, len(STORY), 0)


CHOICES = ("the eldest", "a cat", "No")
MATCHED = {
    **dict.fromkeys(("the eldest", "The Eldest.", "It was the eldest who took it."), "the eldest"),
    **dict.fromkeys(("**a cat**", "A cat", "B", "(B)", "B.", "(B) a cat"), "a cat"),
    **dict.fromkeys(("B: because it had boots", "B\nBecause it is said (A) nowhere."), "a cat"),
    **dict.fromkeys(("a cat, not a dog", "The answer is (B).", "Answer: B"), "a cat"),
    **dict.fromkeys(("**C**", "No, it was not.", "The correct option is: C"), "No"),
    "I would say (B), surely.": "a cat",
    **dict.fromkeys(("I would say (B) or (C).", "It is the eldest or a cat", "A dog"), None),
    **dict.fromkeys(("Z", "nobody knows", ""), None),
}


@pytest.mark.parametrize(
    ("answers", "choices", "expected"),
    [
        *(([text], CHOICES, expected) for text, expected in MATCHED.items()),
        (["A"], ["B", "A"], "A"),
        (["the black cat"], ["cat", "the black cat"], "the black cat"),
        (["It is the black cat."], ["cat", "the black cat"], "the black cat"),
        (["🐈"], ["🐈", "👢"], "🐈"),
        (["猫"], ["犬", "猫"], "猫"),
        (["not entailment"], ["entailment", "not entailment"], "not entailment"),
        (["a", "b", "b"], ["a", "b"], "b"),
        (["b", "a"], ["a", "b"], "b"),
        (["x"], [], None),
    ],
)
def test_answers_are_matched_to_a_choice(
    answers: list[str], choices: list[str], expected: str | None
) -> None:
    assert chosen(answers, choices) == expected


@pytest.mark.parametrize(("reply_text", "text"), [("(B) a cat", "a cat"), ("a dog", "a dog")])
def test_an_answer_that_matches_no_choice_is_not_changed(reply_text: str, text: str) -> None:
    with running(lambda request: reply(request, reply_text)) as server:
        reader = Endpoint(server.base_url, "m")
        [output] = reader.read([Read(("text",), "Who?", choices=CHOICES)])
        assert "(A) the eldest\n(B) a cat\n(C) No" in server.requests[0].prompt
    assert (output.text, output.scores) == (text, ())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"base_url": "localhost:8000"}, "base_url is not an address"),
        ({"base_url": "http://[::1/v1"}, "base_url is not an address"),
        ({"base_url": f"http://me:{SECRET}@x/v1"}, "base_url is not an address"),
        ({"base_url": "http://me:sesame@x/v1"}, "base_url has a name, a password"),
        ({"base_url": "http://x:port/v1"}, "base_url is not an address"),
        ({"base_url": f"http://x/v1?key={SECRET}"}, "base_url has a name, a password"),
        ({"base_url": "http://x/v1/chat/completions"}, "must not contain /chat/completions"),
        ({"model": " "}, "model is empty"),
        ({"mode": "completions", "system": "Be brief."}, "system needs mode 'chat'"),
        ({"budget_dollars": 1.0}, "budget_dollars needs prices"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Endpoint(**{"base_url": "http://x/v1", "model": "m", **parameters})
    assert SECRET not in str(caught.value)


def test_empty_prompts_and_pairs_are_refused() -> None:
    reader = Endpoint("http://127.0.0.1:1/v1", "m", prompt="{context}")
    with pytest.raises(ValueError, match="the prompt is empty"):
        reader.read(reads(""))
    with pytest.raises(ValueError, match="a pair of texts"):
        reader.read([Read(("a",), pair=("a", "b"))])


def test_the_configs_of_the_guide_load(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block, encoding="utf-8")
        assert load_config([path])
    assert blocks
