"""Pages of the site that are made of the code: a class each section, every verb; the nav of both.

A hook of MkDocs, by mkdocs.yml. A class, parameter or option that is not described fails the build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from leporello.cli import application
from leporello.config.placement import Placement
from leporello.config.reference.class_page import ClassPage, page_of
from leporello.core.environment.classes import built_ins
from leporello.core.protocols import ALL_KINDS
from leporello.core.training import Training

_PAGES = (*(kind.title for kind in ALL_KINDS), "settings", "command-line")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the made pages and the decisions to the nav."""
    nav: Any = config.nav
    sections = {
        title: pages
        for section in nav
        if isinstance(section, dict)
        for title, pages in section.items()
    }
    sections["Reference"][:0] = [f"reference/{name}.md" for name in _PAGES]
    decisions = sorted(Path(config.docs_dir).glob("decisions/*.md"))
    sections["Decisions"] += [f"decisions/{path.name}" for path in decisions]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Makes the pages."""
    for name, text in pages():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each page that is made.

    Raises:
        PluginError: Something is not described.
    """
    for kind in ALL_KINDS:
        title = kind.title.replace("_", " ").capitalize()
        yield kind.title, _page(title, kind.key, [*built_ins(kind).items()])
    settings = [("train", Training), ("placement", Placement)]
    yield "settings", _page("Settings of pipelines", "", settings)
    yield "command-line", "\n".join(_command_line())


def _page(title: str, kind: str, classes: list[tuple[str, type]]) -> str:
    made = (page_of(kind or name, name, cls) for name, cls in classes)
    return "\n".join([f"# {title}", *(_class(page) for page in made)])


def _class(page: ClassPage) -> str:
    rows = [
        (f"`{name}`", _code(p.type_name), _code(p.default_text) or "must be given", p.description)
        for name, p in page.parameters.items()
    ]
    rows_told = table(page.name, ("parameter", "type", "default", ""), rows)
    yaml = f"\n```yaml\n{page.yaml}\n```\n" * bool(page.yaml)
    if not page.text:
        raise PluginError(f"{page.name} has no docstring")
    return f"\n## {page.name}\n\n{page.text}\n{rows_told}{yaml}"


def _command_line() -> Iterator[str]:
    yield "# Command line"
    yield "\n`leporello VERB`, or `python run_pipeline.py VERB` in a checkout.\n"
    for verb, command in _verbs(typer.main.get_command(application())):
        context = typer.Context(command)
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"\n## {verb}\n\n{command.help}\n\n```text\nleporello {verb} {usage}\n```\n"
        shown = [option for option in command.params if not option.hidden]
        records = [(*option.get_help_record(context), option.help) for option in shown]
        rows = [(_code(names), told if given else "") for names, told, given in records]
        yield table(verb, ("", ""), rows)


def _verbs(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- typer's
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{name} ")
        else:
            yield f"{before}{name}", command


def table(owner: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns rows as Markdown.

    Args:
        owner: Name of what they describe, for messages.
        head: Names of the columns.
        rows: Cells of each row, the description last.

    Raises:
        PluginError: A description is empty.
    """
    silent = [row[0] for row in rows if not row[-1]]
    if silent:
        raise PluginError(f"{owner}: not described: {', '.join(silent)}")
    lines = [" | ".join(row) for row in (head, ("---",) * len(head), *rows)]
    return "\n" + "".join(f"| {line} |\n" for line in lines) * bool(rows)


def _code(text: str) -> str:
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}" * bool(text)
