"""YAML 1.2: a reader that keeps file and line of each value, scalar types, and a writer.

PyYAML parses text into events and writes nodes; its scalar types are not used because they follow
YAML 1.1. Begin with `tree`.
"""
