"""Rows of questions from HotpotQA's own files, with the paragraphs that do not help."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

_SOURCE = "hotpotqa"


def rows_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the rows of one question of the distractor setting.

    One has both supporting paragraphs as its passage, others a paragraph alone that has the answer.

    Args:
        item: Question as HotpotQA's own files have it, or, with columns, those of the hub.
    """
    texts = {title: f"{title}\n{''.join(sentences).strip()}" for title, sentences in _pairs(item)}
    facts = item["supporting_facts"]
    titles = facts["title"] if isinstance(facts, dict) else [title for title, _ in facts]
    gold = [title for title in texts if title in titles]
    name = item.get("id") or item["_id"]
    random.Random(name).shuffle(gold)
    yes_no = item["answer"] if item["answer"] in ("yes", "no") else None
    alone = [] if yes_no else [texts[title] for title in gold]
    for passage in ["\n\n".join(texts[title] for title in gold), *alone]:
        answers = [] if yes_no else _places(passage, item["answer"])
        if answers or yes_no:
            yield {
                "set": _SOURCE,
                "document_id": f"{_SOURCE}/{name}",
                "question": item["question"],
                "passage": passage,
                "answers": tuple(answers),
                "yes_no": yes_no,
                "others": tuple(text for title, text in texts.items() if title not in gold),
            }


def _pairs(item: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    context = item["context"]
    if isinstance(context, dict):
        return zip(context["title"], context["sentences"], strict=True)
    return iter(context)


def _places(text: str, answer: str) -> list[tuple[int, str]]:
    """Returns where a text has an answer as whole words, case and all."""
    pattern = rf"(?<!\w){re.escape(answer)}(?!\w)"
    return [(found.start(), found.group()) for found in re.finditer(pattern, text)]
