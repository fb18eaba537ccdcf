"""Readers, which answer from passages. `pipelines.yaml` may name each of these classes.

Modules at the top contain readers; the folders contain code that readers share. Begin with `naive`,
the simplest, then `language_models`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
