"""Texts with marks in them: XML, LaTeX, reStructuredText, notebooks, source code, JSON."""
