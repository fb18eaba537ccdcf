"""The verb `schema`."""

from __future__ import annotations

from leporello.cli.options import print_json


def schema() -> None:
    """Prints the JSON Schema of pipelines.yaml, for editors: what may stand where, and its meaning.

    Keep it beside your file, `leporello schema > leporello.schema.json`, and begin the file with
    `# yaml-language-server: $schema=leporello.schema.json`: editors with the YAML language server
    (VS Code's YAML extension, Neovim, Emacs, Helix, Zed) then complete, check and explain. PyCharm
    takes the schema under Settings, JSON Schema Mappings.
    """
    from leporello.config.schema import schema as make_schema

    print_json(make_schema())
