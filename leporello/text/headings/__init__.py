"""Headings of plain text: detection, sections and labels.

Start with `detect`: it takes marked headings (`markup`), and otherwise guesses from the lines
(`lines`, `runs`) and keeps consecutive numbers (`numbering`). Rules decide, not a trained model.
"""

from leporello.text.headings.detect import headings, is_bare
from leporello.text.headings.labels import Label, label_of, name_of

__all__ = ["Label", "headings", "is_bare", "label_of", "name_of"]
