"""The verb `ask`: a question to one's own file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leporello.cli.options import AsJson, ConfigFiles, NoCache, Overrides, print_json, stdout
from leporello.storage import to_path

__all__ = ["ask"]


def ask(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="txt, md, srt, vtt, html or pdf; or a URL", parser=to_path, metavar="FILE"
        ),
    ],
    question: str,
    pipeline: Annotated[str, typer.Option("--pipeline", help="[default: the default one]")] = "",
    model: Annotated[
        str, typer.Option("--model", help="Of the pipeline's reader: a path, or a hub id.")
    ] = "",
    all_passages: Annotated[
        bool, typer.Option("--passages", help="Show every passage that was selected.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    no_cache: NoCache = False,
    as_json: AsJson = False,
) -> None:
    """Asks one's own document, and shows where the answer stands."""
    from leporello.cli.display.answer import show_answer
    from leporello.runs.ask import ask as ask_file

    answer = ask_file(
        file,
        question,
        pipeline=pipeline,
        config=config or (),
        overrides=[*(overrides or ()), *([f"reader.model={model}"] if model else [])],
        cached=not no_cache,
    )
    if as_json:
        passages = [asdict(passage) for passage in answer.passages]
        ledger = asdict(answer.coverage)
        shown = {"answer": answer.text, "passages": passages, "coverage": ledger}
        spans = [asdict(span) for span in answer.spans]
        losses = [asdict(loss) for loss in answer.document.losses]
        print_json({**shown, "notes": answer.notes, "spans": spans, "losses": losses})
    else:
        show_answer(stdout(), answer, all_passages=all_passages)
