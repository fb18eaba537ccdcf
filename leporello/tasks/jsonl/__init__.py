"""Reads and checks the rows of files.

`schema` checks the fields of a row, `finding` lists the files of a task, `row_files` reads them as
one sequence of rows, and `scan` checks all rows once and finds those of each document.
"""
