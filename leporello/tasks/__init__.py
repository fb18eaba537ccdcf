"""Tasks: files of questions on documents, as examples. A task's own class is named in the YAML."""

from __future__ import annotations

from leporello.tasks.json_lines import JsonLines
from leporello.tasks.sample import Sample

__all__ = ["JsonLines", "Sample"]
