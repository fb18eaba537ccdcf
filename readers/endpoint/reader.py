"""Models behind a server: of OpenAI, Anthropic, another service, or one's own."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Collection, Sequence
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
from leporello.readers.endpoint.choices import chosen
from leporello.readers.endpoint.protocols import (
    PROTOCOLS,
    EndpointPrompt,
    Mode,
    ServerProtocol,
    check_url,
    schema_sent,
    unwrapped,
)
from leporello.readers.endpoint.responses import EndpointError, EndpointReply, ResponseFault, Usage
from leporello.readers.endpoint.spending import ServerAccount, shared_ledger
from leporello.readers.endpoint.token_counts import TokenCounts
from leporello.readers.prompting.chat import messages
from leporello.readers.prompting.prompted_reader import PROMPT, PromptedReader
from leporello.readers.prompting.template import encodable, seen
from leporello.readers.prompting.window import OnOverflow, Window

if TYPE_CHECKING:
    from leporello.readers.endpoint.batches import Batches
    from leporello.readers.endpoint.client import Client
    from leporello.readers.endpoint.requests import Dispatcher
    from leporello.readers.endpoint.throttle import Throttle

_MINUTE = 60.0
_BATCHED = 0.5  # share of its price that services take for what is sent as a batch
_parts = threading.RLock()  # what is made on first use is made once, whatever threads race for it


@dataclass(frozen=True)
class Endpoint(PromptedReader):
    """Reads with a model behind a server of OpenAI's or Anthropic's protocol, several at once.

    It may be called from as many threads as it has `slots`. What passes (5xx, time-outs, broken
    connections, answers that are none) is asked again, `retries` times; what concerns one input
    fails it alone; what concerns all of them (the key, the model's name, no server) stops the run.
    A 429 is no failure: fewer requests are sent at once, or none for a time; see `patience`.

    Equal prompts are asked once, and get one answer at any temperature. With choices, the answer
    is matched to one of them by its text or letter; where it names none, it stays as it is. There
    are no scores.

    Attributes:
        base_url: Address of the server, mostly with `/v1` at its end.
        model: Model as the server names it.
        api_key: The environment variable that holds the key, `$OPENAI_API_KEY`; empty for servers
            that want none.
        mode: Form of the requests: `chat` sends messages, `completions` plain text, `messages`
            those of Anthropic's protocol.
        system: System message of the chat; none is sent if it is empty.
        tokenizer: Tokenizer of the model, by path or hub id, chat template included; `words`
            guesses 1.5 tokens a word or one for 3 bytes, whichever is more, and 32 for the chat.
        max_input_tokens: Tokens of the window: prompt, system message and chat template.
        on_overflow: Rule for passages that do not fit: `fit` leaves out the last ones, `truncate`
            cuts in the middle of one, `split` reads the parts one by one and joins the answers
            (with choices, takes what most parts say), `error` fails the input.
        max_new_tokens: Number of tokens that are written at most, those of a model's reasoning
            included.
        max_tokens_field: Name of this number in the request; some models want
            `max_completion_tokens`.
        temperature: Temperature of the draw; 0 is the likeliest answer, null leaves it to the
            server.
        sampling_seed: Seed that is sent as `seed`, for a temperature above 0; null sends none.
        stop: Strings before the first of which the server ends the answer.
        concurrency: Number of requests under way at once, of all processes of a run together; fewer
            while the server answers 429 or takes nearly as long as `timeout`.
        requests_per_minute: Number of requests that are sent in a minute, evenly, of all processes
            of a run together. None is no limit.
        timeout: Seconds that a request may take in all.
        retries: Number of further attempts after a failure that may pass, at growing random
            intervals, and never before a server's Retry-After.
        patience: Seconds for which a server may answer nothing but 429, Retry-After included,
            before the run stops; the same command goes on. An input that gets nothing else for
            longer than that while others are answered has `retries` more attempts, and fails alone.
        budget_tokens: Number of tokens, read and written, from which on no further input is begun
            and the run stops; the same command goes on. They are counted over all readers of this
            model at this server.
        budget_dollars: Dollars from which on the same happens.
        cache_prompts: Whether the server is asked to keep what prompts begin with (`messages`
            alone: others do so by themselves): system message and examples, and the passages where
            the prompt has them first.
        batch: Whether what waits is sent as one batch, which services answer within a day at half
            the price; one that was sent before a run was killed is found again.
        options: Further fields of each request, as `{reasoning_effort: low}`.
        input_price: Dollars for a million tokens read.
        cached_price: Dollars for a million tokens read that the server had kept; None is
            `input_price`.
        output_price: Dollars for a million tokens written.
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
    sampling_seed: int | None = None
    stop: tuple[str, ...] = ()
    concurrency: Positive = 8
    requests_per_minute: Positive | None = None
    timeout: Annotated[float, Gt(0)] = 120.0
    retries: Count = 6
    patience: NonNegative = 600.0
    budget_tokens: Positive | None = None
    budget_dollars: Annotated[float, Gt(0)] | None = None
    cache_prompts: bool = False
    batch: bool = False
    options: dict[str, Any] | None = None
    input_price: NonNegative = 0.0
    cached_price: NonNegative | None = None
    output_price: NonNegative = 0.0
    examples: Path | None = None
    shots: Count = 4
    seed: Count = 0

    depends_on_batch: ClassVar[bool] = False
    generates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self._template  # which checks itself
        if self.budget_dollars is not None and not (self.input_price or self.output_price):
            raise ValueError(
                "budget_dollars needs prices: give input_price and output_price, in dollars for a"
                " million tokens"
            )
        check_url(self.base_url)
        if not self.model.strip():
            raise ValueError("model is empty: give the name that the server knows it by")
        if self.system and self.mode == "completions":
            raise ValueError("system needs mode 'chat': put its text into prompt instead")
        if self.cache_prompts and self.mode != "messages":
            raise ValueError("cache_prompts is of mode 'messages'; others keep prompts unasked")
        if self.batch and self.mode == "completions":
            raise ValueError("batch needs mode 'chat' or 'messages'")
        if "" in self.stop:
            raise ValueError("stop has an empty string, which would end every text at once")
        if self.api_key and not isinstance(self.api_key, Key) and not is_variable(self.api_key):
            # Given in Python: hidden from the repr and from messages like one from a file.
            object.__setattr__(self, "api_key", Key(self.api_key, "$api_key"))

    @property
    def slots(self) -> int:
        """How many threads may read at once; 0 where all that waits is one batch."""
        return 0 if self.batch else self._throttle.most

    @property
    def schedules_itself(self) -> bool:
        """Whether it wants all that waits at once."""
        return self.batch

    @property
    def budget(self) -> Budget:
        """Limits of what a run may spend."""
        return Budget(tokens=self.budget_tokens, dollars=self.budget_dollars)

    @property
    def spent(self) -> Ledger:
        """Spending of this process, all readers of this model together."""
        return self._account.ledger.spent

    def share_limits(self, workers: int, budget: Budget) -> None:
        """Has this process hold its share of a run's limits; see `SharesLimits`."""
        self._throttle.most = max(1, self.concurrency // workers)
        self._throttle.interval = workers * _interval(self.requests_per_minute)
        self._account.share(budget)

    def cancel(self) -> None:
        """Ends all reads under way; see `CancelsReads`."""
        if client := self.__dict__.get("_client"):
            client.cancel()

    def load(self) -> None:
        """Opens the session, and loads the tokenizer if there is one; else the first use does.

        Raises:
            UserError: The client's package is not installed, the key cannot be one, there is no
                such tokenizer, or the worked examples leave no room.
        """
        with _parts:
            _ = self._client, self.count([""]), self._window, self._before, self._asker

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order.

        Raises:
            BudgetSpentError: The budget is spent, or this process's share of it.
            UserError: Something is wrong that concerns every input, or a worked example was drawn
                from a document of theirs.
            EndpointError: The server gives no answer to one of the inputs; the others' answers
                are remembered, and cost nothing when they are read again without it.
        """
        self.load()
        parts = self._parts(inputs)
        prompts = [
            [EndpointPrompt(self._prompt(part), schema_sent(read.schema)) for part in own_parts]
            for read, own_parts in zip(inputs, parts, strict=True)
        ]
        replies = self._replies(dict.fromkeys(chain.from_iterable(prompts)))
        return [
            _output(read, own_parts, [replies[prompt] for prompt in asked], self._account)
            for read, own_parts, asked in zip(inputs, parts, prompts, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the text that is sent, after any cut; a split input's parts one by one."""
        prompts = "\n\n".join(map(self._prompt, self._window.parts(read)))
        before = [(message["role"], message["content"]) for message in self._before]
        turns = [*before, ("user", prompts)] if before else []
        return "\n\n".join(f"{role}: {content}" for role, content in turns) or prompts

    # -- parts, made on first use -------------------------------------------------------------

    @cached_property
    def _before(self) -> list[dict[str, str]]:
        """The messages before the one with the prompt; none where there is no chat."""
        return messages(encodable(self.system), self._prompts.turns) if self._chats else []

    @cached_property
    def _account(self) -> ServerAccount:
        share = _BATCHED if self.batch else 1.0
        cached = self.input_price if self.cached_price is None else self.cached_price
        prices = [price * share for price in (self.input_price, self.output_price, cached)]
        return ServerAccount(shared_ledger(self.base_url, self.model), self.budget, *prices)

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
        from leporello.readers.endpoint.client import Client  # asyncio: only where one reads

        headers = self._protocol.headers(_value(self.api_key))
        client = Client(self.base_url.rstrip("/"), headers)
        weakref.finalize(self, client.close)  # also at the interpreter's exit
        return client

    @cached_property
    def _throttle(self) -> Throttle:
        from leporello.readers.endpoint.throttle import Throttle

        return Throttle(self.concurrency, _interval(self.requests_per_minute))

    @cached_property
    def _asker(self) -> Dispatcher | Batches:
        limits = self.timeout, self.retries
        if self.batch:
            from leporello.readers.endpoint.batches import Batches

            return Batches(self._client, self._protocol, *limits, self._account)
        from leporello.readers.endpoint.requests import Dispatcher

        waits = self.patience, self._throttle
        return Dispatcher(self._client, self._protocol, *limits, *waits, self._account)

    @property
    def _protocol(self) -> ServerProtocol:
        return PROTOCOLS[self.mode]

    @property
    def _chats(self) -> bool:
        return self.mode != "completions"

    # -- asking -------------------------------------------------------------------------------

    def _prompt(self, read: Read) -> str:
        if not self._template.render(read).strip():
            raise ValueError("the prompt is empty: there is nothing to read")
        return self._render(read)

    def _body(self, prompt: EndpointPrompt) -> bytes:
        """Returns the request for a prompt, as the protocol wants it."""
        protocol = self._protocol
        kept = self._shared(prompt.text) if self.cache_prompts else None
        fields = {
            "model": self.model,
            **protocol.content(self._before, prompt.text, kept),
            self.max_tokens_field: self.max_new_tokens,
            "temperature": self.temperature,
            "seed": self.sampling_seed if protocol.takes_seed else None,
            protocol.stop: [*self.stop] or None,
            **protocol.form(prompt.schema),
            **(self.options or {}),
        }
        return json.dumps({n: value for n, value in fields.items() if value is not None}).encode()

    def _shared(self, prompt: str) -> int:
        """Returns the length of what prompts on the same passages have in common."""
        follows = self.prompt.partition("{context}")[2].partition("{")[0]
        return max(0, prompt.rfind(follows)) if follows else 0

    def _replies(self, prompts: Collection[EndpointPrompt]) -> dict[EndpointPrompt, EndpointReply]:
        """Returns the reply to each prompt.

        The budget is checked before anything is asked, and what is begun is then finished: answers
        that came back and were paid could not be handed over together with the news that the
        budget is spent, and the next process would buy them again.
        """
        from leporello.readers.endpoint.requests import PendingRequest

        check = self._account.check
        request = PendingRequest(prompts, self._body, self._tokens.usage, check)
        replies: dict[EndpointPrompt, EndpointReply] = {}
        for prompt, outcome in self._client.run(self._asker.ask(request)).items():
            if isinstance(outcome, ResponseFault):
                raise EndpointError(outcome.message)
            replies[prompt] = outcome
        return replies


def _interval(per_minute: int | None) -> float:
    """Returns the seconds from one request to the next."""
    return _MINUTE / per_minute if per_minute else 0.0


def _value(secret: str) -> str:
    """Returns the key; where Python code gave a variable's name, as a file would, what it holds.

    Raises:
        UserError: It cannot be one.
    """
    named = is_variable(secret) and not isinstance(secret, Key)
    value = str(key(secret) if named else secret).strip()
    if not (value.isascii() and value.isprintable()):
        raise UserError("api_key: the key has characters that no key has, such as a line's end")
    return value


def _output(
    read: Read, parts: Sequence[Read], replies: Sequence[EndpointReply], account: ServerAccount
) -> Output:
    """Joins the replies to the parts of an input."""
    spans, cut = seen(read, parts)
    texts = [unwrapped(reply.text, read.schema) for reply in replies if reply.text]
    usage = sum((reply.usage for reply in replies if reply.usage), Usage(0, 0))
    return Output(
        text=chosen(texts, read.choices) or "\n".join(texts),
        read=spans,
        cut=cut,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        dollars=account.price(usage),
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning) or None,
        reasoning_tokens=usage.reasoning_tokens or None,
    )
