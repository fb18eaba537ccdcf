__all__: list[str]

from .fixed_tokens import FixedTokens as FixedTokens
from .lines import Lines as Lines
from .lines import Rows as Rows
from .mention_windows import MentionWindows as MentionWindows
from .paragraphs import Paragraphs as Paragraphs
from .paragraphs import Sections as Sections
from .paragraphs import Sentences as Sentences
from .recursive import Recursive as Recursive
from .windows import Parts as Parts
from .windows import Whole as Whole
from .windows import Windows as Windows
