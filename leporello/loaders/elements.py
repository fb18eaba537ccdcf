"""Elements of HTML: the separators around them, and those whose content is lost."""

from enum import IntEnum


class Gap(IntEnum):
    """Separator before a text; the strongest requested separator is written."""

    NONE = 0
    FIGURE = 1  # separates figures only
    SPACE = 2
    CELL = 3
    LINE = 4
    PARAGRAPH = 5


GAP_TEXTS = ("", "", " ", "\t", "\n", "\n\n")
PARAGRAPHS = (
    "address", "article", "aside", "blockquote", "dl", "fieldset", "figure", "form", "hr", "main",
    "nav", "ul", "ol", "menu", "p", "pre", "section", "table",
)  # fmt: skip
LINES = (
    "body", "caption", "dd", "dt", "div", "figcaption", "footer", "header", "li", "option",
    "center", "details", "dialog", "hgroup", "legend", "summary", "tbody", "tfoot", "thead", "tr",
)  # fmt: skip
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# Losses of elements without text.
LOST = {
    "img": ("image", "has no alternative text; images are not read"),
    "iframe": ("frame", "shows another page, which is not fetched"),
    "frame": ("frame", "shows another page, which is not fetched"),
    "object": ("embedded object", "is not read"),
    "embed": ("embedded object", "is not read"),
    "canvas": ("drawing", "is drawn by a script, which is not run"),
    "svg": ("drawing", "only its text is read"),
    "video": ("video", "is not read"),
    "audio": ("sound", "is not read"),
    "script": ("script", "is not run, and may contain the text; save the page from a browser"),
}
