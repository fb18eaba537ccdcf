"""Limits of users' files: far above any normal file, and low enough to protect the machine.

They are checked while a file is read, before its content takes memory; docs/files.md lists them.
"""

from __future__ import annotations

CONFIG_BYTES = 2**21  # bytes of a YAML file, of a mapping's JSON, or of a text of the command line
CONFIG_MARKS = 100_000  # line ends, commas and opening brackets, since each can add a node
CONFIG_DIRECTIVES = 100  # `%TAG` directives, which libyaml compares with each other
CONFIG_NODES = 100_000  # mappings, lists and values, counted again for each alias
CONFIG_DEPTH = 100  # mappings and lists within each other
NUMBER_LETTERS = 400  # letters of a number; the longest float is shorter
POINTS = 5_000  # stages and pipelines from the sweeps of one pipeline
ANCESTORS = 50  # pipelines in a chain of `extends`
COLUMNS = 10_000  # columns of a suite

ROW_BYTES = 2**25  # uncompressed bytes of a row; a user's task can raise it by `max_row_bytes`
EXPANDED_BYTES = 2**28  # uncompressed bytes that are allowed for any compressed file
EXPANDED_TIMES = 250  # maximum ratio of uncompressed to compressed size beyond EXPANDED_BYTES
XML_DEPTH = 256  # elements within each other
RTF_DEPTH = 500  # groups within each other
ARCHIVE_ENTRIES = 20_000  # entries of a zip file that is a document
TABLE_COLUMNS = 100_000  # columns of a row of a text table
MAIL_PARTS = 1_000  # attachments of a mail; more are reported as lost
HEADER_LETTERS = 4_000  # letters of a mail's header; more are reported as lost
