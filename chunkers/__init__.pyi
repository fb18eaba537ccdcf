__all__: list[str]

from .fixed_tokens import FixedTokens as FixedTokens
from .fixed_tokens import Parts as Parts
from .fixed_tokens import Whole as Whole
from .fixed_tokens import Windows as Windows
from .mention_windows import MentionWindows as MentionWindows
from .paragraphs import Lines as Lines
from .paragraphs import Paragraphs as Paragraphs
from .paragraphs import Rows as Rows
from .paragraphs import Sections as Sections
from .paragraphs import Sentences as Sentences
from .recursive import Recursive as Recursive
