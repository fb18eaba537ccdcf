"""Rows in the layouts of SCROLLS, ZeroSCROLLS and report_sum_sort."""

from collections.abc import Sequence
from typing import Any

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Example

STORY = "A fox sat\n\non a gate.\nIt saw — nothing.\n\n"


def scrolls_row(name: str, text: str, output: object = "gold", **more: object) -> dict[str, Any]:
    """Returns a row in the layout of SCROLLS."""
    return {"id": name, "pid": f"{name}_0", "input": text, "output": output, **more}


def zero_scrolls_row(
    name: str,
    *,
    before: str = "Read this. Answer well.\n\nStory:\n",
    text: str = STORY,
    query: str = "",
    output: object = "gold",
    header: str = "Question",
    over: bool = False,
    **more: object,
) -> dict[str, Any]:
    """Returns a row in the layout of ZeroSCROLLS, without a query if that is empty.

    With `over` the query's end includes the header of the answer, as in some copies.
    """
    question = f"{header}:\n{query}" if query else ""
    tail = "\n\nAnswer:\n" if query else "Answer:\n"
    prompt, start = f"{before}{text}\n\n{question}{tail}", len(before + text) + 2
    return scrolls_row(name, prompt, output) | {
        "document_start_index": len(before),
        "document_end_index": len(before + text),
        "query_start_index": start,
        "query_end_index": len(prompt) if over else start + len(question),
        "truncation_seperator": "... [The rest of the story is omitted]\n\n",
        **more,
    }


def sorting_row(name: str, report: str, summaries: Sequence[str], gold: str) -> dict[str, Any]:
    """Returns a row in the layout of report_sum_sort."""
    before = "Put them in order.\n\nSummaries:\n"
    text, starts = f"{before}Report:\n{report}\n\nSummaries:\n\n", []
    for number, summary in enumerate(summaries, 1):
        starts.append(len(text))
        text += f"Summary {number}:\n{summary}\n\n"
    end = len(text) - 2
    return {
        "id": name, "input": f"{text}Summary IDs in Correct Order:\n", "output": gold,
        "document_start_index": len(before), "document_end_index": end,
        "query_start_index": end + 2, "query_end_index": end + 2,
        "truncation_seperator": "...", "inner_docs_start_indices": starts,
    }  # fmt: skip


def official_input(example: Example) -> str:
    """Returns an example's input, rebuilt from its prompt."""
    prompt = OfficialPrompt.of(example)
    assert prompt is not None
    return prompt.around(example.document.text)
