"""Loaders of text with markup: XML, LaTeX, reStructuredText, notebooks, source code, JSON."""
