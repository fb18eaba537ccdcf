"""Files of pipelines, tasks and suites -> checked specs; every fault at once, with file and line.

It may read the files that it is given and import the classes that they name; it loads no model and
touches no task's data. Begin with `loading`, then `layers` (several files as one), `builder` (trees
become specs), `sweeps` (a stage's tree) and `specs` (what comes out).
"""

import lazy_loader

# The stub beside this file names the module of each name, which is imported when it is used: `list`
# needs the table of built-in names only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
