"""Typed answers: a type as JSON Schema, values in texts, and what a schema forbids.

Begin with `schema`, which makes JSON Schema of `{type: date}` and says what nothing can satisfy;
`parse` makes a value of a text, `values` knows how numbers and dates are written.
"""
