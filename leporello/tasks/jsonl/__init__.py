"""Reads and checks the rows of files.

`schema` checks the fields of a row. `finding` lists the files of a task, `row_files` reads them as
one sequence of rows and renames columns to fields, with `formats` for the formats and `unpacked`
for compressed files. `scan` checks all rows once and stores where the rows of each document are, on
disk if they do not fit into memory.
"""
