"""Loaders of tables: one line per row, with the column name before each cell."""
