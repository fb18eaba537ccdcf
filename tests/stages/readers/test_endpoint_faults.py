"""Tests of the reader Endpoint with a server that misbehaves."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from endpoint_server import SECRET, Request, endpoint, reads, reply, running, sliding, texts

from leporello.core.errors import UserError
from leporello.core.records import Output
from leporello.core.secrets import Key
from leporello.models.servers import list_models
from leporello.readers import Endpoint
from leporello.readers.endpoint.client import Throttle
from leporello.readers.endpoint.responses import EndpointError, fault_of_status

# Temporary faults


def status(code: int, **headers: str) -> Callable[[Request], None]:
    return lambda request: request.fail(code, None, **headers)


def broken_off(request: Request) -> None:
    """Closes the connection in the middle of the body."""
    request.begin(Content_Length="1000")
    request.handler.wfile.write(b'{"choices": [')
    request.drop()


def broken_off_in_chunks(request: Request) -> None:
    """Closes the connection after a complete answer, but without the last chunk of HTTP."""
    content = b'{"choices": [{"message": {"content": "half"}}]}'
    request.begin(Transfer_Encoding="chunked")
    request.handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
    request.drop()


def trickle(request: Request) -> None:
    """Sends one byte every 0.05 seconds."""
    request.begin(Content_Length="1000")
    while not request.server.ending.wait(0.05):
        request.handler.wfile.write(b" ")
        request.handler.wfile.flush()


MISBEHAVIOUR: dict[str, tuple[Callable[[Request], None], str]] = {
    "429": (status(429), "the server answered 429: status 429"),
    "429 with Retry-After": (status(429, Retry_After="0.05"), "answered 429"),
    "500": (status(500), "the server answered 500: status 500"),
    "408": (status(408), "answered 408"),
    "500 without JSON": (lambda request: request.send(b"oh", 500, "text/plain"), "500: oh"),
    "500 without a word": (lambda request: request.send(b"", 500), "500: nothing"),
    "hangs": (Request.hang, "did not answer within 0.7 s"),
    "trickles": (trickle, "did not answer within 0.7 s"),
    "closes": (Request.drop, "the connection broke"),
    "closes in the middle": (broken_off, "the connection broke"),
    "closes among chunks": (broken_off_in_chunks, "the connection broke"),
    "not JSON": (lambda request: request.send(b'{"choices": [{'), 'not JSON: {"choices": [{'),
    "half a character": (lambda request: request.send(b'"\xff"'), "not JSON"),
    "empty": (lambda request: request.send(b""), "not JSON: nothing"),
    "a page": (
        lambda request: request.send(b"<html>Bad gateway</html>", kind="text/html"),
        "not JSON: <html>Bad gateway</html>; it is a web page: check base_url",
    ),
    "not an object": (lambda request: request.send(b"[1, 2]"), "has no choices: [1, 2]"),
    "no choices": (lambda request: reply(request, choices=...), "has no choices"),
    "empty choices": (lambda request: reply(request, choices=[]), "has no choices"),
    "null choices": (lambda request: reply(request, choices=[None]), "has no choices"),
    "an error with 200": (lambda a: a.send(b'{"error": {"message": "busy"}}'), "busy"),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_failed_requests_are_repeated_until_the_limit(name: str) -> None:
    script, message = MISBEHAVIOUR[name]
    is_refusal = name.startswith("429")  # repeated until `patience` ends, however often

    def misbehave(request: Request) -> None:
        is_bad = request.prompt == "never" or (request.prompt == "later" and request.times <= 2)
        script(request) if is_bad else reply(request)

    with running(misbehave) as server:
        # Other cases must not time out on a busy machine.
        reader = endpoint(server, timeout=0.7 if name in ("hangs", "trickles") else 20)
        prompts = ("a", "later", "b") if is_refusal else ("a", "later", "b", "never")
        outputs = sliding(reader, reads(*prompts))
        never = {} if is_refusal else {"never": 3}
        assert server.prompts == {"a": 1, "later": 3, "b": 1, **never}
    assert texts(outputs) == ["A", "LATER", "B"]
    for error in outputs[3:]:
        assert isinstance(error, EndpointError)
        assert re.fullmatch(rf".*{re.escape(message)}.*; asked 3 times", str(error))


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0.4", 0.4), ("-5", 0.0), ("nan", None), ("soon", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_the_wait_of_a_server_is_parsed(value: str, wait: float | None) -> None:
    assert fault_of_status(503, {"retry-after": value}, b"").wait == wait


def test_all_requests_wait_for_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    moments, is_resting, original = list[float](), threading.Event(), Throttle.rest

    def note(throttle: Throttle, wait: float) -> None:
        original(throttle, wait)
        is_resting.set()

    monkeypatch.setattr(Throttle, "rest", note)

    def limited(request: Request) -> None:
        moments.append(time.monotonic())
        if request is server.requests[0]:
            request.fail(429, None, Retry_After="0.4")
        elif request is server.requests[1]:
            is_resting.wait(30)
            request.fail(500)
        else:
            reply(request)

    with running(limited) as server:
        endpoint(server, concurrency=2).read(reads("a", "b", "c", "d"))
    assert len(moments) == 6
    assert all(moment - moments[0] >= 0.4 for moment in moments[2:])


def test_waits_are_random_with_a_growing_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[float, float]] = []

    def draw_wait(least: float, most: float) -> float:
        limits.append((least, most))
        return 0.0

    monkeypatch.setattr("random.uniform", draw_wait)
    with running(status(500)) as server:
        monkeypatch.setattr("leporello.readers.endpoint.requests._FIRST_WAIT", 1.0)
        with pytest.raises(EndpointError, match="asked 9 times"):
            endpoint(server, retries=8).read(reads("a"))
    assert limits == [(0.0, most) for most in (1, 2, 4, 8, 16, 32, 60, 60)]


LONG = {"message": "This model's maximum context length is 8", "code": "context_length_exceeded"}


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        (lambda request: request.fail(400, LONG), f"answered 400: {LONG['message']}; if prompt an"),
        # Filters of gateways answer with 403.
        (
            lambda request: request.fail(403, {"message": "flagged"}),
            "the server answered 403: flagged; the key may not use this model",
        ),
        (Request.send_endlessly, "the server's answer exceeds 33,554,432 bytes"),
    ],
)
def test_an_input_that_the_server_refuses_does_not_affect_others(
    fail: Callable[[Request], None], message: str
) -> None:
    def refuse(request: Request) -> None:
        fail(request) if request.prompt == "bad" else reply(request)

    with running(refuse) as server:
        outputs = sliding(endpoint(server), reads("a", "bad", "b", "c", "a"))
        assert server.prompts == {"a": 1, "b": 1, "c": 1, "bad": 1}
    assert message in str(outputs[1])
    assert [type(output) for output in outputs].count(Output) == 4


TOO_LONG = [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in"),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    (400, "the request exceeds the available context size, try increasing it"),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4090 `inputs` tokens"),
    (400, "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum"),
    (400, "prompt is too long: 200001 tokens > 200000 maximum"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed"),
    (413, "Payload Too Large"),
]
OTHER_COMPLAINTS = [(400, "Invalid 'temperature'"), (400, "image inputs are not supported")]


@pytest.mark.parametrize(("code", "text"), TOO_LONG + OTHER_COMPLAINTS)
def test_errors_for_long_prompts_name_the_parameters_to_lower(code: int, text: str) -> None:
    message = fault_of_status(code, {}, json.dumps({"error": {"message": text}}).encode()).message
    assert message.startswith(f"the server answered {code}: {text}")
    has_fix = "lower max_input_tokens or max_new_tokens" in message
    assert has_fix == ((code, text) in TOO_LONG)


PAGE = b"<html><head><title>Oh</title></head>" + b"<p>x</p>" * 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"object": "error", "message": "too long", "code": 400}', "400: too long"),
        (b'{"error": {"code": 400, "message": "too long"}}', "400: too long"),
        (b'{"error": "too long"}', "400: too long"),
        (b'{"detail": [{"loc": ["body"]}]}', '400: [{"loc": ["body"]}]'),
        (b'{"error": {"odd": 1}}', '400: {"odd": 1}'),
        (b"\xff\xfe", "400: "),
        (PAGE, "400: <html><head><title>Oh"),
    ],
)
def test_the_message_of_an_error_is_found_in_several_formats(body: bytes, message: str) -> None:
    assert message in fault_of_status(400, {}, body).message


def test_an_endless_list_of_models_is_refused() -> None:
    with (
        running(lambda request: request.send_endlessly()) as server,
        pytest.raises(UserError, match="its answer exceeds 8,388,608 bytes"),
    ):
        list_models(server.base_url)


def test_an_answer_can_be_empty() -> None:
    """A model can end at once."""
    with running(lambda request: reply(request, "  ")) as server:
        assert texts(endpoint(server).read(reads("a"))) == [""]


def test_an_input_that_failed_is_sent_again_by_the_next_call() -> None:
    """The engine reads inputs of a failed batch one by one."""

    def later(request: Request) -> None:
        request.fail(400) if request.times == 1 else reply(request)

    with running(later) as server:
        reader = endpoint(server)
        for inputs, expected in ((reads("a"), ["A"]), (reads("b", "c"), ["B", "C"])):
            with pytest.raises(EndpointError):
                reader.read(inputs)
            assert texts(reader.read(inputs)) == expected


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (401, {"message": f"Incorrect API key provided: {SECRET}"}, r"\$MY_KEY; check api_key"),
        (402, {"message": "Insufficient Balance"}, "no credit left"),
        (404, {"message": "The model `m` does not exist."}, "`m` does not exist.; check model"),
        (429, {"code": "insufficient_quota"}, "no credit left"),
        (400, {"code": "unsupported_parameter"}, "max_tokens_field, temperature"),
    ],
)
def test_mistakes_of_the_user_stop_the_run(
    code: int, error: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They concern all inputs: requests are not repeated, and those under way are cancelled."""
    monkeypatch.setenv("MY_KEY", SECRET)
    with running(lambda request: request.fail(code, error)) as server:
        reader = endpoint(server, api_key=Key(SECRET, "$MY_KEY"), concurrency=2)
        with pytest.raises(UserError, match=message) as caught:
            reader.read(reads(*map(str, range(40))))
        assert len(server.requests) <= 6
        assert max(server.prompts.values()) == 1
    assert SECRET not in str(caught.value)


def test_a_missing_server_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leporello.readers.endpoint.requests._FIRST_WAIT", 0.001)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        reader = Endpoint(address, "m", retries=2)
        with pytest.raises(UserError, match=r"no connection to .*check base_url.*asked 3 times"):
            reader.read(reads("a", "b"))
