"""Headings of plain text: detection, sections and labels.

Start with `detect`: it takes marked headings, and otherwise guesses from the `lines`, and leaves
out lists and numbers that are not consecutive (`runs`). Rules decide, not a trained model.
"""

from leporello.text.headings.detect import headings, is_bare
from leporello.text.headings.labels import Label, label_of, name_of

__all__ = ["Label", "headings", "is_bare", "label_of", "name_of"]
