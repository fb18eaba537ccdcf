"""Typed answers: a type as JSON Schema, and values in texts.

Begin with `schema`, which converts `{type: date}` to JSON Schema; `parse` converts a text to a
value; `values` finds numbers and dates; `fields` has the fields of objects and their units.
"""
