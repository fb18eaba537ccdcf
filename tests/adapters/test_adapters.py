"""Components of other libraries as stages, and pipelines as components of other libraries."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from leporello import Pipeline
from leporello.core.errors import UserError

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # set before the library is imported
TEXT = "Ann found the fax.\n\nNed has a boat.\n\nThe ferry runs since 1871."
PLUG_INS = {
    "langchain_core": """
from dataclasses import dataclass
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from leporello.readers.foreign import LangChainReader
from leporello.retrievers.foreign import LangChainRetriever

@dataclass(frozen=True)
class Searches(LangChainRetriever):
    k: int = 2

    def make(self, documents):
        store = InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=4))
        return store.as_retriever(search_kwargs={"k": self.k})

class Says(FakeListChatModel):
    def _call(self, messages, *args, **kwargs):
        return "yes" if "Who has a boat?" in messages[-1].text else "no"

@dataclass(frozen=True)
class Reads(LangChainReader):
    def make(self):
        return Says(responses=[""])
""",
    "haystack": """
from dataclasses import dataclass
from haystack import component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from leporello.readers.foreign import HaystackReader
from leporello.retrievers.foreign import HaystackRetriever

@dataclass(frozen=True)
class Searches(HaystackRetriever):
    k: int = 2

    def make(self, documents):
        store = InMemoryDocumentStore()
        store.write_documents(documents)
        return InMemoryBM25Retriever(store, top_k=self.k)

@component
class Says:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages):
        reply = "yes" if "Who has a boat?" in messages[-1].text else "no"
        usage = {"prompt_tokens": 7, "completion_tokens": 1}
        return {"replies": [ChatMessage.from_assistant(reply, meta={"usage": usage})]}

@dataclass(frozen=True)
class Reads(HaystackReader):
    def make(self):
        return Says()
""",
}
BEST: dict[str, Any] = {"extends": "best-sentence", "chunker": {"class": "Paragraphs", "size": 5}}


@pytest.mark.parametrize("library", PLUG_INS)
def test_components_of_another_library_are_stages(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    file = tmp_path / "own.py"
    file.write_text(PLUG_INS[library], encoding="utf-8")
    stages = {"retriever": {"class": f"{file}:Searches"}, "reader": {"class": f"{file}:Reads"}}
    pipeline = Pipeline.from_yaml({**BEST, **stages}, cached=False)
    answers = pipeline.answers(TEXT, ["Who has a boat?", "Who found the fax?"])
    assert [answer.text for answer in answers] == ["yes", "no"]
    assert all(0 < len(answer.passages) <= 2 for answer in answers)
    if library == "haystack":
        assert answers[0].passages[0].text == "Ned has a boat."
        assert (answers[0].cost.input_tokens, answers[0].cost.output_tokens) == (7, 1)


def test_a_pipeline_is_a_runnable() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.runnables import RunnableLambda

    from leporello.adapters.langchain import as_runnable

    chain = as_runnable(Pipeline.from_yaml(BEST)) | RunnableLambda(lambda answer: answer.text)
    inputs = [{"document": TEXT, "question": q} for q in ("Who has a boat?", "Who found the fax?")]
    assert chain.batch(inputs) == ["Ned has a boat.", "Ann found the fax."]
    assert asyncio.run(chain.ainvoke(inputs[0])) == "Ned has a boat."


def test_a_pipeline_is_a_component_of_haystack() -> None:
    pytest.importorskip("haystack")
    import haystack

    from leporello.adapters.haystack import Leporello

    outer = haystack.Pipeline()
    outer.add_component("leporello", Leporello(BEST))
    again = haystack.Pipeline.loads(outer.dumps(), allowed_modules=[Leporello.__module__])
    inputs = {"leporello": {"document": TEXT, "question": "Who has a boat?"}}
    for pipeline in (outer, again):
        result = pipeline.run(inputs)["leporello"]
        assert result["answer"] == "Ned has a boat."
        assert result["documents"][0].meta == {"place": "text characters 20–35", "read": True}
        assert " characters: " in result["ledger"][0]


def test_a_pipeline_is_a_model_of_the_evaluation_harness(tmp_path: Path) -> None:
    lm_eval = pytest.importorskip("lm_eval")
    from leporello.adapters.lm_eval import LeporelloLM

    data = tmp_path / "own.jsonl"
    data.write_text('{"text": "Ned has a boat. Ann found it.", "q": "Who has a boat?"}\n')
    task: dict[str, Any] = {
        "task": "own", "dataset_path": "json", "test_split": "train",
        "dataset_kwargs": {"data_files": str(data)}, "output_type": "generate_until",
        "doc_to_text": "{{text}}\n\n{{q}}", "doc_to_target": "Ned has a boat",
        "generation_kwargs": {"until": ["."]}, "metric_list": [{"metric": "exact_match"}],
    }  # fmt: skip
    model = LeporelloLM(Pipeline.from_yaml("best-sentence", cached=False))
    results = lm_eval.simple_evaluate(model=model, tasks=[task], bootstrap_iters=0)["results"]
    assert results["own"]["exact_match,none"] == 1.0
    with pytest.raises(UserError, match="no log-likelihoods"):
        model.loglikelihood([])
