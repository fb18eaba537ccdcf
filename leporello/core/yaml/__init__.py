"""YAML: a tree that keeps file and line of each value, YAML 1.2 scalars, and the writer.

PyYAML parses text into events and writes nodes; its types of scalars, of YAML 1.1, are not used.
Begin with `tree`.
"""
