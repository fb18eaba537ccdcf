"""How much a file of the user's may hold: far more than anybody writes, far less than harms.

Each is looked at while a file is read, before what it holds takes memory; docs/files.md lists them.
"""

from __future__ import annotations

CONFIG_BYTES = 2**21  # of a YAML file, of a mapping's JSON, or of a text of the command line
CONFIG_MARKS = 100_000  # line ends, commas and opening brackets of it, each of which is a node
CONFIG_DIRECTIVES = 100  # `%TAG`, which libyaml compares with each other
CONFIG_NODES = 100_000  # mappings, lists and values, those behind aliases counted each time
CONFIG_DEPTH = 100  # mappings and lists within each other
NUMBER_LETTERS = 400  # of a number; more is beyond every float
POINTS = 5_000  # stages and pipelines that the sweeps of one pipeline make
ANCESTORS = 50  # pipelines that extend each other
COLUMNS = 10_000  # of a suite

ROW_BYTES = 2**25  # of a row, expanded; `max_row_bytes` of a task of one's own raises it
EXPANDED_BYTES = 2**28  # that any compressed file may expand to, and beyond it
EXPANDED_TIMES = 250  # so many times its size
XML_DEPTH = 256  # elements within each other
RTF_DEPTH = 500  # groups within each other
ARCHIVE_ENTRIES = 20_000  # of a zip that is a document
TABLE_COLUMNS = 100_000  # of a row of text
MAIL_PARTS = 1_000  # attachments of a mail; more are told as lost
HEADER_LETTERS = 4_000  # of a mail's header; more are told as lost
