"""Ways in which the results of a plug-in can depend on something other than its source file."""
# ruff: noqa: E501 -- a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_READS = "(HERE / 'words.txt').read_text()"
_WORDS = {"words.txt": "{word}"}
_MODULE = {"third.py": 'WORD = "{word}"\n'}
_BASE = {"third.py": 'class Base:\n    def told(self):\n        return "{word}"\n'}
_SITE = {
    "site/attacked/__init__.py": "from importlib.metadata import version\nWORD = version('attacked')",
    "site/attacked.dist-info/METADATA": "Name: attacked\nVersion: {version}\n",
    "site/attacked.dist-info/top_level.txt": "attacked\n",
}


@dataclass(frozen=True)
class Way:
    """A way to a word that changes between two runs.

    Attributes:
        word: Expression in a method of the plug-in.
        before: Lines at the top of the plug-in.
        files: Texts of files by path, with `{word}` in them; a `.link` leads to a file of its text.
        declares: Line in the class.
        source: Path that the config gives as a parameter.
        named: Whether `--set` gives the word as a parameter.
        is_reused: Whether the change is not noticed; a line names the class then.
        is_seen: Whether a finished run is refused.
    """

    word: str
    before: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    declares: str = "depends_on = ()"
    source: str = ""
    named: bool = False
    is_reused: bool = False
    is_seen: bool = True


# fmt: off
WAYS: Mapping[str, Way] = {
    # declared
    "a file": Way(_READS, files=_WORDS, declares="depends_on = ('words.txt',)"),
    "a file in a folder": Way("next((HERE / 'things').iterdir()).read_text()", files={"things/words.txt": "{word}"}, declares="depends_on = ('things',)"),
    "a link": Way("(HERE / 'a.link').read_text()", files={"a.link": "{word}"}, declares="depends_on = ('a.link',)"),
    "a variable": Way("os.environ['WORDS']", declares="depends_on = ('env:WORDS',)"),
    "a variable that is set later": Way("os.environ.get('SECOND', 'red')", declares="depends_on = ('env:SECOND',)"),
    "a file of a base class": Way("self.told()", "from things.base import Base", {"things/words.txt": "{word}", "things/base.py": "from pathlib import Path\nclass Base:\n    depends_on = ('words.txt',)\n    def told(self):\n        return Path(__file__).with_name('words.txt').read_text()\n"}, declares="pass"),
    # parameters
    "a path to a file": Way("self.source.read_text()", files=_WORDS, source="words.txt"),
    "a path to a folder": Way("(self.source / 'words.txt').read_text()", files={"things/words.txt": "{word}"}, source="things"),
    "a path to a link": Way("self.source.read_text()", files={"a.link": "{word}"}, source="a.link"),
    "--set": Way("self.named", named=True),
    # code
    "import": Way("third.WORD", "import third", _MODULE),
    "from import": Way("WORD", "from third import WORD", _MODULE),
    "import late": Way("late()", "def late():\n    from third import WORD\n    return WORD", _MODULE),
    "import star": Way("WORD", "from third import *", _MODULE),
    "through another module": Way("second.WORD", "import second", {"second.py": "from third import WORD", **_MODULE}),
    "a package": Way("inner.WORD", "from things import inner", {"things/__init__.py": "", "things/inner.py": 'WORD = "{word}"'}),
    "a package's __init__": Way("inner.WORD", "from things import inner", {"things/__init__.py": 'W = "{word}"', "things/inner.py": "from things import W as WORD"}),
    "a namespace": Way("inner.WORD", "from space import inner", {"space/inner.py": 'WORD = "{word}"'}),
    "a module that comes later": Way("WORD", "try:\n    from late_one import WORD\nexcept ImportError:\n    WORD = 'red'", {"late_one.py": "{late}"}),
    "a base class": Way("self.told()", "from third import Base", _BASE),
    "a base class's base": Way("self.told()", "from second import Base", {"second.py": "import third\nclass Base(third.Base):\n    pass", **_BASE}),
    "a base class by import_module": Way("self.told()", "Base = importlib.import_module('thi' + 'rd').Base", _BASE),
    "a decorator": Way("told()", "import third\n@third.says\ndef told(): pass", {"third.py": 'def says(function):\n    return lambda: "{word}"'}),
    "a default": Way("told()", "import third\ntold = lambda w=third.WORD: w", _MODULE),
    "module __getattr__": Way("third.ANY", "import third", {"third.py": 'def __getattr__(name):\n    return "{word}"'}),
    "another version": Way("attacked.WORD", "import attacked", _SITE),
    # what nobody declared
    "an undeclared file": Way(_READS, files=_WORDS, declares="pass", is_reused=True),
    "an undeclared variable": Way("os.environ['WORDS']", declares="pass", is_reused=True),
    "a server": Way("urllib.request.urlopen(os.environ['SERVER']).read().decode()", "import urllib.request", declares="repeatable = False", is_seen=False),
}
# fmt: on
