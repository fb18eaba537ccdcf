"""Asks a server many prompts at once, each until it is answered or there is no use in asking."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leporello.errors import UserError
from leporello.records import JSON
from leporello.redaction import scrub
from readers.endpoint.answers import Fault, Reply, Usage, fault_of, reply_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Terms", "ask"]

# Waits grow as 1, 2, 4, … s, drawn anew from nothing up to that: what failed together would
# otherwise come back together.
_FIRST_WAIT = 1.0
_MOST_WAIT = 60.0
# Requests that start together are answered together, and as the client handles the answers in
# turns, each is as late as all of them take: in step for ever. So they start this much apart.
_APART = 0.001


@dataclass(frozen=True)
class Terms:
    """How a server is asked.

    Attributes:
        base_url: For messages.
        chat: Whether it is sent messages, or plain text.
        body: The request for a prompt.
        usage: What a prompt and its answer took, where the server does not tell.
        concurrency: Requests under way at once.
        timeout: Seconds that a request may take in all, however it trickles.
        retries: Further attempts after a failure that may pass.
    """

    base_url: str
    chat: bool
    body: Callable[[str], dict[str, JSON]]
    usage: Callable[[str, str], Usage]
    concurrency: int
    timeout: float
    retries: int


async def ask(
    client: AsyncOpenAI,
    terms: Terms,
    prompts: Collection[str],
    spend: Callable[[Usage], None],
    keep: Callable[[str, Reply | Fault], None],
) -> None:
    """Asks every prompt, in order, and hands over what comes of each as it comes.

    Args:
        client: Of the server.
        terms: How it is asked.
        prompts: All different.
        spend: Told of what every response took, those included that are no use.
        keep: Told what came of each prompt in the end.

    Raises:
        UserError: What is wrong concerns all prompts; those under way are cancelled.
    """
    asking = _Asking(client, terms, spend, keep)
    left = iter(prompts)
    workers = [
        asyncio.create_task(asking.work(left)) for _ in range(min(terms.concurrency, len(prompts)))
    ]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


@dataclass
class _Asking:
    """What the workers have in common: when the server wants to be asked again."""

    client: AsyncOpenAI
    terms: Terms
    spend: Callable[[Usage], None]
    keep: Callable[[str, Reply | Fault], None]
    not_before: float = 0.0  # on the loop's clock, as below
    next_start: float = 0.0

    async def work(self, left: Iterator[str]) -> None:
        """Asks what is left, one prompt after another."""
        for prompt in left:
            outcome = await self._ask(prompt)
            if isinstance(outcome, Fault) and outcome.stops == "always":
                raise UserError(outcome.told)
            self.keep(prompt, outcome)

    async def _ask(self, prompt: str) -> Reply | Fault:
        outcome, attempts = await self._attempt(prompt), 1
        while isinstance(outcome, Fault) and outcome.again:
            if attempts > self.terms.retries:
                return replace(outcome, told=f"{outcome.told}; asked {attempts} times")
            await self._pause(attempts, outcome.wait)
            outcome, attempts = await self._attempt(prompt), attempts + 1
        return outcome

    async def _attempt(self, prompt: str) -> Reply | Fault:
        await self._wanted()
        outcome = await self._send(prompt)
        # A server may repeat the key that it was sent, in what it complains of or even answers.
        if isinstance(outcome, Fault):
            outcome = replace(outcome, told=scrub(outcome.told))
        else:
            usage = outcome.usage or self.terms.usage(prompt, outcome.text)
            outcome = Reply(scrub(outcome.text), usage)
        if outcome.usage:
            self.spend(outcome.usage)
        return outcome

    async def _send(self, prompt: str) -> Reply | Fault:
        import openai

        terms = self.terms
        try:
            async with asyncio.timeout(terms.timeout):
                content = await _post(self.client, terms, prompt)
        except (openai.APIError, TimeoutError) as error:
            return fault_of(error, terms.base_url, terms.timeout)
        return reply_of(content, chat=terms.chat)

    async def _pause(self, attempts: int, wait: float | None) -> None:
        if wait is not None:
            until = asyncio.get_running_loop().time() + wait
            self.not_before = max(self.not_before, until)
        doubled = 2.0 ** min(attempts - 1, 9)  # beyond any float, were retries without end
        longest = min(_MOST_WAIT, _FIRST_WAIT * doubled)
        await asyncio.sleep(random.uniform(0.0, longest))

    async def _wanted(self) -> None:
        """Waits until the server wants to be asked: what one worker is told, all keep to."""
        clock = asyncio.get_running_loop().time
        while (left := self.not_before - clock()) > 0:
            await asyncio.sleep(left + random.uniform(0.0, _FIRST_WAIT))
        start = max(clock(), self.next_start)
        self.next_start = start + _APART
        if (left := start - clock()) > 0:
            await asyncio.sleep(left)


async def _post(client: AsyncOpenAI, terms: Terms, prompt: str) -> bytes:
    """Returns the body of the response as it came: what is in it is judged here."""
    import httpx2

    path = "/chat/completions" if terms.chat else "/completions"
    response = await client.post(path, body=terms.body(prompt), cast_to=httpx2.Response)
    return response.content
