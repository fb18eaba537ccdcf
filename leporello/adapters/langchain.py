"""LangChain Runnable that runs a pipeline."""

from typing import Any

from leporello.api import Answer, Pipeline
from leporello.core.environment.extras import require

require("leporello.adapters.langchain", "langchain_core")
from langchain_core.runnables import Runnable, RunnableLambda  # noqa: E402 -- after the check


def as_runnable(pipeline: Pipeline) -> Runnable[dict[str, Any], Answer]:
    """Returns a Runnable that passes `{"document": …, "question": …}` to `Pipeline.answer`."""

    def answer(values: dict[str, Any]) -> Answer:
        return pipeline.answer(values["document"], values["question"])

    async def answer_async(values: dict[str, Any]) -> Answer:
        return await pipeline.answer_async(values["document"], values["question"])

    return RunnableLambda(answer, answer_async, name="Leporello")
