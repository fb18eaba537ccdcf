__all__: list[str]

from .fixed_tokens import FixedTokens as FixedTokens
from .lines import Lines as Lines
from .mention_windows import MentionWindows as MentionWindows
from .paragraphs import Paragraphs as Paragraphs
from .recursive import Recursive as Recursive
from .rows import Rows as Rows
from .sections import Sections as Sections
from .sentences import Sentences as Sentences
from .whole import Parts as Parts
from .whole import Whole as Whole
from .windows import Windows as Windows
