"""Rows of files: where they lie, where they begin, what they may hold, what is wrong with one.

`schema` is what a row may say, whatever it comes from; `columns` renames. `finding` says which
files there are, `row_files` reads them as one: `lines`, `tables` and `tars`, compressed ones by
their copies in `unpacked`. `scan` goes through them once, and remembers in `offsets` where the rows
of each document stand, on the disk, as they may be larger than the memory.
"""
