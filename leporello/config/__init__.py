"""Checks files of pipelines, tasks and suites, and reports all faults with file and line.

The package reads config files and imports the classes that they name; it never loads a model or a
task's data. Begin with `loading`, then `layers` (merges files), `builder` (turns trees into specs),
`sweeps` (turns the tree of a stage into specs) and `specs` (the result).
"""

import lazy_loader

# The stub next to this file lists the module of each name, which is imported on first use: `list`
# needs the table of built-in names only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
