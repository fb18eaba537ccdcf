"""The user's own files as documents.

One file a format, each a class: how it is recognised, and how bytes become text with an outline,
places, and what of the file is lost. `load` finds the format by content and suffix. Spans count
characters of the *extracted* text. A loader may touch the file that it is given, and nothing else.
"""

import lazy_loader

# The stub beside this file names the module of each format, which is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
