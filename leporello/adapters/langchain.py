"""A pipeline as a Runnable of LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda

from leporello.api import Answer, Pipeline


def as_runnable(pipeline: Pipeline) -> Runnable[dict[str, Any], Answer]:
    """Returns what answers `{"document": …, "question": …}`, as `Pipeline.answer` takes them."""

    def answer(asked: dict[str, Any]) -> Answer:
        return pipeline.answer(asked["document"], asked["question"])

    async def answer_async(asked: dict[str, Any]) -> Answer:
        return await pipeline.answer_async(asked["document"], asked["question"])

    return RunnableLambda(answer, answer_async, name="Leporello")
