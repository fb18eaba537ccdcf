"""Loaders that convert users' files to documents.

There is one class per format; `load` detects it by content and suffix. Spans count characters of
the *extracted* text. A loader may open only the file that it loads.
"""

import lazy_loader

# The stub next to this file names the module of each format, which is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
