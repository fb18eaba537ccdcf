"""Ways in which what a plug-in makes can rest on something beside its own file."""
# ruff: noqa: E501 -- a table

from __future__ import annotations

import gzip
import pickle
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_WORDS = {"words.txt": "{word}\n"}


@dataclass(frozen=True)
class Way:
    """A way to come by a word.

    Attributes:
        word: Expression.
        before: Lines at the top of the plug-in.
        files: Texts of files by path, with `{word}` where it stands; other suffixes are in `MADE`.
        is_seen: Whether a finished run can know of the change: what a server says is not known.
    is_repeated: Whether two runs come by the same word, if nothing changes.
    """

    word: str
    before: str = ""
    files: Mapping[str, str] = field(default_factory=lambda: _WORDS)
    is_seen: bool = True
    is_repeated: bool = True


def _sqlite(path: Path, word: str) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base:
        base.execute("create table words (word)")
        base.execute("insert into words values (?)", (word,))
        base.commit()


def _zip(path: Path, word: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.txt", word)
        archive.writestr("zipped.py", f'WORD = "{word}"\n')


def _named(path: Path, word: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    (path / word).touch()


def _link(path: Path, word: str) -> None:
    path.unlink(missing_ok=True)
    path.with_name(word).write_text(word)
    path.symlink_to(word)


MADE: Mapping[str, Callable[[Path, str], object]] = {
    ".gz": lambda path, word: path.write_bytes(gzip.compress(word.encode(), mtime=0)),
    ".npy": lambda path, word: np.save(path, np.array([word])),
    ".pickle": lambda path, word: path.write_bytes(pickle.dumps(word)),
    ".db": _sqlite,
    ".zip": _zip,
    ".link": _link,
    ".names": _named,
    ".late": lambda path, word: word == "red" or path.write_text(word),  # is not there at first
    ".dist-info/METADATA": lambda path, word: path.write_text(
        f"Name: attacked\nVersion: {'1.0' if word == 'red' else '2.0'}\n"
    ),
}
_MODULE = {"third.py": 'WORD = "{word}"\n'}
_TOLD = {"third.py": 'class Base:\n    def told(self):\n        return "{word}"\n'}
_THINGS = {"things/__init__.py": "", "things/words.txt": "{word}"}
_LAST = "sorted(p.name for p in (HERE / 'a.names').iterdir())[0]"
_LOAD = (
    "def loaded():\n"
    "    spec = importlib.util.spec_from_file_location('third', HERE / 'third.py')\n"
    "    module = importlib.util.module_from_spec(spec)\n"
    "    spec.loader.exec_module(module)\n"
    "    return module\n"
)

# fmt: off
WAYS: Mapping[str, Way] = {
    # files
    "open": Way("open(P).read()"),
    "Path.read_text": Way("P.read_text()"),
    "Path.read_bytes": Way("P.read_bytes().decode()"),
    "Path.open": Way("P.open().readline()"),
    "os.open": Way("os.read(os.open(P, os.O_RDONLY), 9).decode()"),
    "os.open at a folder": Way("os.read(os.open('words.txt', 0, dir_fd=os.open(HERE, 0)), 9).decode()"),
    "for writing too": Way("open(P, 'r+').read()"),
    "codecs": Way("codecs.open(P).read()", "import codecs"),
    "io.FileIO": Way("io.FileIO(P).read().decode()", "import io"),
    "fileinput": Way("next(fileinput.FileInput(P))", "import fileinput"),
    "linecache": Way("linecache.getline(str(P), 1)", "import linecache"),
    "mmap": Way("bytes(mmap.mmap((f := open(P, 'rb')).fileno(), 0, access=mmap.ACCESS_READ)).decode()", "import mmap"),
    "shutil.copy": Way("Path(shutil.copy(P, tempfile.mkdtemp())).read_text()", "import shutil, tempfile"),
    "gzip": Way("gzip.open(HERE / 'words.gz').read().decode()", "import gzip", {"words.gz": ""}),
    "zip": Way("zipfile.ZipFile(HERE / 'a.zip').read('words.txt').decode()", "import zipfile", {"a.zip": ""}),
    "zipimport": Way("importlib.import_module('zipped').WORD", "import sys\nsys.path.append(str(HERE / 'a.zip'))", {"a.zip": ""}),
    "sqlite3": Way("sqlite3.connect(HERE / 'a.db').execute('select word from words').fetchone()[0]", "import sqlite3", {"a.db": ""}),
    "json": Way("json.load(open(HERE / 'a.json'))['w']", "import json", {"a.json": '{{"w": "{word}"}}'}),
    "yaml": Way("yaml.safe_load(open(HERE / 'a.yaml'))['w']", "import yaml", {"a.yaml": "w: {word}"}),
    "toml": Way("tomllib.loads((HERE / 'a.toml').read_text())['w']", "import tomllib", {"a.toml": 'w = "{word}"'}),
    "configparser": Way("(c := configparser.ConfigParser()).read(HERE / 'a.ini') and c['a']['w']", "import configparser", {"a.ini": "[a]\nw = {word}"}),
    "csv": Way("next(csv.reader(open(P)))[0]", "import csv"),
    "pickle": Way("pickle.load(open(HERE / 'a.pickle', 'rb'))", "import pickle", {"a.pickle": ""}),
    "numpy.load": Way("str(np.load(HERE / 'a.npy')[0])", "import numpy as np", {"a.npy": ""}),
    "numpy.loadtxt": Way("str(np.loadtxt(P, dtype=str))", "import numpy as np"),
    "numpy.fromfile": Way("np.fromfile(P, dtype='S3')[0].decode()", "import numpy as np"),
    "numpy.memmap": Way("bytes(np.memmap(P, dtype='u1', mode='r')[:3]).decode()", "import numpy as np"),
    "a link": Way("open(HERE / 'a.link').read()", files={"a.link": ""}),
    "a relative path": Way("open('words.txt').read()"),
    "a path in a variable": Way("open(HERE / os.environ['WORDS']).read()", files={"red": "red", "tan": "tan"}),
    "tried to open": Way("tried()", "def tried():\n    try:\n        return open(HERE / 'a.late').read()\n    except OSError:\n        return 'red'", {"a.late": ""}),
    "listdir": Way("sorted(os.listdir(HERE / 'a.names'))[0]", files={"a.names": ""}),
    "scandir": Way("min(e.name for e in os.scandir(HERE / 'a.names'))", files={"a.names": ""}),
    "walk": Way("min(next(os.walk(HERE / 'a.names'))[2])", files={"a.names": ""}),
    "iterdir": Way(_LAST, files={"a.names": ""}),
    "glob": Way("Path(min(glob.glob(str(HERE / 'a.names/*')))).name", "import glob", {"a.names": ""}),
    "rglob": Way("min(p.name for p in HERE.rglob('a.names/*'))", files={"a.names": ""}),
    "importlib.resources": Way("resources.files('things').joinpath('words.txt').read_text()", "from importlib import resources", _THINGS),
    "pkgutil": Way("pkgutil.get_data('things', 'words.txt').decode()", "import pkgutil", _THINGS),
    "loader": Way("__loader__.get_data(str(P)).decode()"),
    # programs
    "subprocess": Way("subprocess.run(['cat', P], capture_output=True, text=True).stdout", "import subprocess", is_seen=False),
    "os.popen": Way("os.popen(f'cat {P}').read()", is_seen=False),
    "multiprocessing": Way("multiprocessing.get_context('fork').Pool(1).apply(open_it)", "import multiprocessing\ndef open_it():\n    return open(P).read()", is_seen=False),
    # variables
    "environ[]": Way("os.environ['WORDS']", files={}),
    "environ.get": Way("os.environ.get('WORDS', '')", files={}),
    "getenv": Way("os.getenv('WORDS')", files={}),
    "environb": Way("os.environb[b'WORDS'].decode()", files={}),
    "getenvb": Way("os.getenvb(b'WORDS').decode()", files={}),
    "environ.copy": Way("os.environ.copy()['WORDS']", files={}),
    "environ.items": Way("dict(os.environ.items())['WORDS']", files={}),
    "environ.values": Way("[v for v in os.environ.values() if v in ('red', 'tan')][0]", files={}),
    "in environ": Way("'tan' if 'SECOND' in os.environ else 'red'", files={}),
    "expandvars": Way("os.path.expandvars('$WORDS')", files={}),
    # code
    "import": Way("third.WORD", "import third", _MODULE),
    "from import": Way("WORD", "from third import WORD", _MODULE),
    "import late": Way("late()", "def late():\n    from third import WORD\n    return WORD", _MODULE),
    "import star": Way("WORD", "from third import *", _MODULE),
    "import_module": Way("importlib.import_module('thi' + 'rd').WORD", files=_MODULE),
    "__import__": Way("__import__('thi' + 'rd').WORD", files=_MODULE),
    "spec": Way("loaded().WORD", _LOAD, _MODULE),
    "SourceFileLoader": Way("SourceFileLoader('thi' 'rd', str(HERE / 'third.py')).load_module().WORD", "from importlib.machinery import SourceFileLoader", _MODULE),
    "runpy": Way("runpy.run_path(str(HERE / 'third.py'))['WORD']", "import runpy", _MODULE),
    "run_module": Way("runpy.run_module('thi' + 'rd')['WORD']", "import runpy", _MODULE),
    "exec": Way("exec((HERE / 'third.py').read_text(), s := {}) or s['WORD']", files=_MODULE),
    "compile": Way("eval(compile(P.read_text(), '<text>', 'eval'), {'red': 'red', 'tan': 'tan'})"),
    "a package": Way("things.WORD", "import things.inner\nfrom things import inner as things", {"things/__init__.py": "", "things/inner.py": 'WORD = "{word}"'}),
    "a package's __init__": Way("inner.WORD", "from things import inner", {"things/__init__.py": 'W = "{word}"', "things/inner.py": "from things import W as WORD"}),
    "a namespace": Way("inner.WORD", "from space import inner", {"space/inner.py": 'WORD = "{word}"'}),
    "absent module": Way("WORD", "try:\n    from late_one import WORD\nexcept ImportError:\n    WORD = 'red'", {"late_one.py": "{late}"}),
    "through another module": Way("second.WORD", "import second", {"second.py": "from third import WORD", **_MODULE}),
    "a base class": Way("self.told()", "from third import Base", _TOLD),
    "a base class's base": Way("self.told()", "from second import Base", {"second.py": "import third\nclass Base(third.Base):\n    pass", **_TOLD}),
    "a base class by import_module": Way("self.told()", "Base = importlib.import_module('thi' + 'rd').Base", _TOLD),
    "a decorator": Way("told()", "import third\n@third.says\ndef told(): pass", {"third.py": 'def says(function):\n    return lambda: "{word}"'}),
    "a patched method": Way("self.told()", "class Base:\n    def told(self): return 'none'\nimportlib.import_module('thi' + 'rd').patch(Base)", {"third.py": 'def patch(cls):\n    cls.told = lambda self: "{word}"'}),
    "a lambda's default": Way("told()", "import third\ntold = lambda w=third.WORD: w", _MODULE),
    "a global dict": Way("TABLE['w']", "import third\nTABLE = {'w': third.WORD}", _MODULE),
    "module __getattr__": Way("third.ANY", "import third", {"third.py": 'def __getattr__(name):\n    return "{word}"'}),
    "sitecustomize": Way("builtins.WORD", "import builtins", {"site/sitecustomize.py": 'import builtins\nbuiltins.WORD = "{word}"'}),
    "an installed package": Way("attacked.WORD", "import attacked", {"site/attacked/__init__.py": 'WORD = "{word}"', "site/attacked-1.0.dist-info/METADATA": "Name: attacked\nVersion: 1.0\n", "site/attacked-1.0.dist-info/top_level.txt": "attacked\n"}),
    "an installed package by name": Way("importlib.import_module('attac' + 'ked').WORD", "", {"site/attacked/__init__.py": 'WORD = "{word}"', "site/attacked-1.0.dist-info/METADATA": "Name: attacked\nVersion: 1.0\n", "site/attacked-1.0.dist-info/top_level.txt": "attacked\n"}),
    "an installed package's data": Way("resources.files('attacked').joinpath('words.txt').read_text()", "from importlib import resources", {"site/attacked/__init__.py": "", "site/attacked/words.txt": "{word}", "site/attacked-1.0.dist-info/METADATA": "Name: attacked\nVersion: 1.0\n"}),
    "another version": Way("metadata.version('attac' + 'ked')", "from importlib import metadata", {"site/attacked/__init__.py": "", "site/attacked.dist-info/METADATA": ""}),
    # servers and clocks
    "a server": Way("urllib.request.urlopen(os.environ['SERVER']).read().decode()", "import urllib.request", {}, is_seen=False),
    "a server by socket": Way("asked()", "import socket\ndef asked():\n    with socket.create_connection(('127.0.0.1', int(open(HERE / 'port').read()))) as s:\n        s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n        return s.makefile().read().split()[-1]", {}, is_seen=False),
    "a clock": Way("str(time.time_ns())", "import time", {}, is_seen=False, is_repeated=False),
    "a random number": Way("str(random.random())", "import random", {}, is_seen=False, is_repeated=False),
}
# fmt: on
