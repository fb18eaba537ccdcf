"""Requests to a server, repeated until they are answered or fail permanently."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from weakref import WeakValueDictionary

from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.readers.endpoint.client import Client, Throttle
from leporello.readers.endpoint.protocols import ServerProtocol
from leporello.readers.endpoint.responses import EndpointReply, Outcome, ResponseFault, outcome_of
from leporello.readers.endpoint.spending import ServerAccount, TokenCounts

# The limit of waits grows as 1, 2, 4, … s; each wait is random up to it, so that requests that
# failed together are not repeated together.
_FIRST_WAIT = 1.0
_MAX_WAIT = 60.0
_RESUMES = "run the same command again to resume"
_REPLIES = 4096  # cached replies of some hundred bytes each


@dataclass(eq=False)
class Dispatcher:
    """Sends prompts on the client's event loop, so without locks.

    It caches replies, so that equal requests are sent and paid once.
    """

    client: Client
    protocol: ServerProtocol
    timeout: float  # seconds per request, even if data keep arriving
    retries: int  # after a temporary failure
    patience: float  # seconds for which the server may answer only 429
    account: ServerAccount  # for every answer, even an unusable one
    counts: TokenCounts  # for servers that do not report usage
    throttle: Throttle
    _replies: dict[bytes, EndpointReply] = field(default_factory=dict)  # by hash of the body
    _locks: WeakValueDictionary[bytes, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _callers: int = 0
    _stop: asyncio.Future[ResponseFault] = field(init=False)  # fault that concerns every request
    _refused_until: float = 0.0  # on the loop's clock

    async def ask(self, prompts: Mapping[bytes, str]) -> dict[bytes, Outcome]:
        """Returns the outcome of each request, by its body; the values are the bodies' prompts.

        Raises UserError for a fault that concerns all requests.
        """
        # Only before a call: answers that were paid for would be lost if it stopped one.
        if not self._replies.keys() >= {*map(_key, prompts)}:
            self.account.check()
        loop = asyncio.get_running_loop()
        if not self._callers and self._refused_until - loop.time() <= self.patience:
            self.throttle.reset_refusals()  # the patience of later callers starts again
            self._stop = loop.create_future()
        stop, answers = self._stop, asyncio.create_task(self._answers(prompts))
        self._callers += 1
        try:
            await asyncio.wait((answers, stop), return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                raise UserError(stop.result().message)
            return answers.result()
        finally:
            self._callers -= 1
            answers.cancel()

    async def _answers(self, prompts: Mapping[bytes, str]) -> dict[bytes, Outcome]:
        outcomes = await asyncio.gather(*map(self._answer, prompts, prompts.values()))
        return dict(zip(prompts, outcomes, strict=True))

    async def _answer(self, body: bytes, prompt: str) -> Outcome:
        key = _key(body)
        # Equal prompts of several calls wait for the reply to the first one.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if reply := self._replies.get(key):
                return reply
            outcome = await self._outcome(body, prompt)
            if isinstance(outcome, EndpointReply):
                self._replies[key] = outcome
                if len(self._replies) > _REPLIES:
                    del self._replies[next(iter(self._replies))]
            elif outcome.stops and not self._stop.done():
                self._stop.set_result(outcome)
            return outcome

    async def _outcome(self, body: bytes, prompt: str) -> Outcome:
        """Repeats a request until it is answered or fails permanently."""
        clock = asyncio.get_running_loop().time
        attempts = failures = 0
        refused_since = math.inf  # without the time in the queue before
        while True:
            outcome = self._charged(await self._attempt(body), prompt)
            if isinstance(outcome, EndpointReply) or not outcome.again:
                return outcome
            attempts += 1
            if outcome.refused:  # counts as a failure only after the patience
                refused_since = min(refused_since, clock())
            failures += not outcome.refused or clock() - refused_since > self.patience
            if failures > self.retries:
                return replace(outcome, message=f"{outcome.message}; asked {attempts} times")
            if not outcome.refused:
                doubled = _FIRST_WAIT * 2.0 ** min(failures - 1, 9)  # more would overflow
                await asyncio.sleep(random.uniform(0.0, min(_MAX_WAIT, doubled)))

    def _charged(self, outcome: Outcome, prompt: str) -> Outcome:
        """Charges an outcome; returns it without keys and, if it is an answer, with its usage."""
        # A server may repeat the key in an error message, or even in an answer.
        if isinstance(outcome, ResponseFault):
            outcome = replace(outcome, message=redact(outcome.message))
        else:
            text, reasoning = outcome.text, outcome.reasoning
            usage = outcome.usage or self.counts.usage(prompt, f"{reasoning} {text}".strip())
            if reasoning and usage.reasoning_tokens is None:
                usage = replace(usage, reasoning_tokens=self.counts.count([reasoning])[0])
            outcome = EndpointReply(redact(text), usage, redact(reasoning))
        if outcome.usage:
            self.account.add(outcome.usage)
        return outcome

    async def _attempt(self, body: bytes) -> Outcome:
        """Sends a request in its turn; may delay all requests, or stop the run beyond patience."""
        clock = asyncio.get_running_loop().time
        await self.throttle.enter()
        started = clock()
        try:
            response = await self.client.post(self.protocol.path, self.timeout, body)
        finally:
            self.throttle.leave()
        outcome = outcome_of(response, self.protocol) if isinstance(response, bytes) else response
        if isinstance(outcome, EndpointReply) or not outcome.again:
            # More requests in parallel would soon exceed the time limit, of which half is used.
            self.throttle.answered(slowly=clock() - started > self.timeout / 2)
            return outcome
        silent = wait = outcome.wait or 0.0
        if outcome.refused:
            silent = self.throttle.refused(started, outcome.wait)
        elif outcome.overloaded:
            self.throttle.overloaded()
        self.throttle.rest(wait)
        if silent <= self.patience:
            return outcome
        why = f"it asks to wait {wait:.0f} s" if wait > self.patience else "it only answers this"
        message = f"{outcome.message}; {why}, and patience is {self.patience:g} s; {_RESUMES}"
        self._refused_until = clock() + wait
        return replace(outcome, message=message, again=False, stops=True)


def _key(body: bytes) -> bytes:
    return sha256(body).digest()
