"""Reader with a model on a server: OpenAI, Anthropic, another service, or the user's."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Gt

from leporello.core.calls.budget import Budget, Ledger
from leporello.core.errors import UserError
from leporello.core.protocols import Count, ModelSource, NonNegative, Positive, Secret
from leporello.core.records import Output, Read
from leporello.core.secrets import Key, is_variable, key
from leporello.readers.endpoint.messages import chosen
from leporello.readers.endpoint.protocols import (
    PROTOCOLS,
    Mode,
    ServerProtocol,
    check_url,
    schema_sent,
    unwrapped,
)
from leporello.readers.endpoint.responses import EndpointError, EndpointReply, ResponseFault
from leporello.readers.endpoint.spending import ServerAccount, TokenCounts, shared_ledger
from leporello.readers.prompting.prompted_reader import PROMPT, PromptedReader, messages
from leporello.readers.prompting.template import encodable, seen
from leporello.readers.prompting.window import OnOverflow, Window

if TYPE_CHECKING:
    from leporello.readers.endpoint.client import Client, Throttle
    from leporello.readers.endpoint.requests import Dispatcher

_parts = threading.RLock()  # threads create the cached properties only once


@dataclass(frozen=True)
class Endpoint(PromptedReader):
    """Reads with a model on a server of OpenAI's or Anthropic's protocol, with parallel requests.

    Up to `slots` threads may call it. Temporary failures (5xx, time-outs, broken connections,
    invalid answers) are repeated `retries` times. Permanent failures of an input fail only that
    input; those of all inputs (key, name of the model, no server) stop the run. A 429 is not a
    failure: it reduces or pauses the requests; see `patience`.

    Equal prompts are sent once, and have the same answer at any temperature. With choices, the
    answer is matched to one of them by its text or letter; without a match it does not change.
    Outputs have no scores.

    Attributes:
        base_url: Address of the server, usually with `/v1` at the end.
        model: Name of the model on the server.
        api_key: Environment variable with the key, such as `$OPENAI_API_KEY`; empty for servers
            without keys.
        mode: Protocol: `chat` sends OpenAI's messages, `completions` plain text, `messages`
            Anthropic's messages.
        system: System message of the chat; empty to omit it.
        tokenizer: Tokenizer of the model, by path or hub id, including its chat template; `words`
            estimates the larger of 1.5 tokens per word and one per 3 bytes, plus 32 for the chat.
        max_new_tokens: Maximum number of generated tokens, including a model's reasoning.
        max_tokens_field: Name of this number in the request; some models need
            `max_completion_tokens`.
        temperature: Sampling temperature; 0 is greedy, null is the default of the server.
        stop: Strings before which the server ends the answer.
        concurrency: Maximum number of parallel requests of all processes of a run; reduced while
            the server answers 429 or takes nearly as long as `timeout`.
        timeout: Maximum number of seconds per request.
        retries: Number of further attempts after a temporary failure, at growing random intervals,
            and never before a server's Retry-After.
        patience: Seconds for which a server may answer only 429, including Retry-After, before the
            run stops; the same command resumes it. An input that gets only 429 for longer while
            others are answered fails after `retries` more attempts.
        budget_tokens: Number of input and output tokens after which the run stops and reads no
            further input; the same command resumes it. All readers of this model on this server
            are counted together.
        budget_dollars: Number of dollars after which the run stops in the same way.
        options: Additional fields of each request, such as `{reasoning_effort: low, seed: 7}`.
        input_price: Dollars per million input tokens.
        output_price: Dollars per million output tokens.
    """

    base_url: str
    model: str
    api_key: Secret = ""
    mode: Mode = "chat"
    prompt: str = PROMPT
    system: str = ""
    separator: str = "\n\n"
    tokenizer: ModelSource = "words"
    max_input_tokens: Positive = 4096
    on_overflow: OnOverflow = "fit"
    max_new_tokens: Positive = 64
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: NonNegative | None = 0.0
    stop: tuple[str, ...] = ()
    concurrency: Positive = 8
    timeout: Annotated[float, Gt(0)] = 120.0
    retries: Count = 6
    patience: NonNegative = 600.0
    budget_tokens: Positive | None = None
    budget_dollars: Annotated[float, Gt(0)] | None = None
    options: dict[str, Any] | None = None
    input_price: NonNegative = 0.0
    output_price: NonNegative = 0.0
    examples: Path | None = None
    shots: Count = 4
    seed: Count = 0

    depends_on_batch: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self._template  # its constructor checks the prompt
        if self.budget_dollars is not None and not (self.input_price or self.output_price):
            raise ValueError(
                "budget_dollars needs prices: set input_price and output_price, in dollars per"
                " million tokens"
            )
        check_url(self.base_url)
        if not self.model.strip():
            raise ValueError("model is empty: set it to the name of the model on the server")
        if self.system and self.mode == "completions":
            raise ValueError("system needs mode 'chat': put its text into prompt instead")
        if "" in self.stop:
            raise ValueError("stop contains an empty string, which would end every text at once")
        if self.api_key and not isinstance(self.api_key, Key) and not is_variable(self.api_key):
            # A key from Python code is hidden from the repr and messages like one from a file.
            object.__setattr__(self, "api_key", Key(self.api_key, "$api_key"))

    @property
    def slots(self) -> int:
        """Maximum number of threads that may read at once."""
        return self._throttle.most

    @property
    def budget(self) -> Budget:
        """Limits of the spending of a run."""
        return Budget(tokens=self.budget_tokens, dollars=self.budget_dollars)

    @property
    def spent(self) -> Ledger:
        """Spending of this process by all readers of this model."""
        return self._account.ledger.spent

    def share_limits(self, workers: int, budget: Budget) -> None:
        """Limits this process to its share of a run's limits; see `SharesLimits`."""
        # At least one, or a worker could never read.
        self._throttle.most = max(1, self.concurrency // workers)
        self._account.share(budget)

    def cancel(self) -> None:
        """Cancels all pending reads; see `SharesLimits`."""
        if client := self.__dict__.get("_client"):
            client.cancel()

    def load(self) -> None:
        """Opens the session, and loads the tokenizer if there is one; `read` does so otherwise."""
        with _parts:
            _ = self._client, self.count([""]), self._window, self._before, self._dispatcher

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order.

        Raises BudgetSpentError if the budget, or this process's share of it, is spent; UserError
        for a fault that concerns all inputs; EndpointError if the server does not answer one of
        them: the answers to the others are cached, and cost nothing when these are read again.
        """
        self.load()
        parts = self._parts(inputs)
        sent = [[*map(self._request, read_parts)] for read_parts in parts]
        prompts = dict(chain.from_iterable(sent))
        outcomes = self._client.run(self._dispatcher.ask(prompts))
        if fault := next((o for o in outcomes.values() if isinstance(o, ResponseFault)), None):
            raise EndpointError(fault.message)
        replies = {b: o for b, o in outcomes.items() if isinstance(o, EndpointReply)}
        return [
            _output(read, read_parts, [replies[body] for body, _ in requests], self._account)
            for read, read_parts, requests in zip(inputs, parts, sent, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the text that is sent, after truncation; the parts of a split input in turn."""
        prompts = "\n\n".join(map(self._prompt, self._window.parts(read)))
        before = [(message["role"], message["content"]) for message in self._before]
        turns = [*before, ("user", prompts)] if before else []
        return "\n\n".join(f"{role}: {content}" for role, content in turns) or prompts

    # -- cached properties --------------------------------------------------------------------

    @cached_property
    def _before(self) -> list[dict[str, str]]:
        return messages(encodable(self.system), self._prompts.turns) if self._chats else []

    @cached_property
    def _account(self) -> ServerAccount:
        ledger = shared_ledger(self.base_url, self.model)
        return ServerAccount(ledger, self.budget, self.input_price, self.output_price)

    @cached_property
    def _tokens(self) -> TokenCounts:
        return TokenCounts(self.tokenizer, self._chats, self.system, self._prompts.turns)

    @cached_property
    def _window(self) -> Window:
        limit, size = self.max_input_tokens, self._tokens.size
        self._prompts.check_room(size, self._render(Read(())), limit)
        return Window(self._render, size, limit, self.on_overflow)

    @cached_property
    def _client(self) -> Client:
        from leporello.readers.endpoint.client import Client  # imports asyncio

        headers = self._protocol.headers(_value(self.api_key))
        client = Client(self.base_url.rstrip("/"), headers)
        weakref.finalize(self, client.close)  # also at the interpreter's exit
        return client

    @cached_property
    def _throttle(self) -> Throttle:
        from leporello.readers.endpoint.client import Throttle

        return Throttle(self.concurrency)

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        from leporello.readers.endpoint.requests import Dispatcher

        limits = self.timeout, self.retries, self.patience
        counted = self._account, self._tokens
        return Dispatcher(self._client, self._protocol, *limits, *counted, self._throttle)

    @property
    def _protocol(self) -> ServerProtocol:
        return PROTOCOLS[self.mode]

    @property
    def _chats(self) -> bool:
        return self.mode != "completions"

    # -- requests -----------------------------------------------------------------------------

    def _prompt(self, read: Read) -> str:
        if not self._template.render(read).strip():
            raise ValueError("the prompt is empty")
        return self._render(read)

    def _request(self, read: Read) -> tuple[bytes, str]:
        """Returns the body of a request, and the prompt in it."""
        protocol, prompt, schema = self._protocol, self._prompt(read), schema_sent(read.schema)
        fields = {
            "model": self.model,
            **protocol.content(self._before, prompt),
            self.max_tokens_field: self.max_new_tokens,
            "temperature": self.temperature,
            protocol.stop: [*self.stop] or None,
            **(protocol.form(schema) if schema else {}),
            **(self.options or {}),
        }
        body = {name: value for name, value in fields.items() if value is not None}
        return json.dumps(body).encode(), prompt


def _value(secret: str) -> str:
    """Returns the key, from the environment if the secret is the name of a variable."""
    is_name = is_variable(secret) and not isinstance(secret, Key)
    value = str(key(secret) if is_name else secret).strip()
    if not (value.isascii() and value.isprintable()):
        raise UserError("api_key: the key has invalid characters, such as a line break")
    return value


def _output(
    read: Read, parts: Sequence[Read], replies: Sequence[EndpointReply], account: ServerAccount
) -> Output:
    """Joins the replies to the parts of an input."""
    spans, cut = seen(read, parts)
    texts = [unwrapped(reply.text, read.schema) for reply in replies if reply.text]
    usages = [reply.usage for reply in replies if reply.usage]
    return Output(
        text=chosen(texts, read.choices) or "\n".join(texts),
        read=spans,
        cut=cut,
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        dollars=account.price(usages),
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning) or None,
        reasoning_tokens=sum(usage.reasoning_tokens or 0 for usage in usages) or None,
    )
