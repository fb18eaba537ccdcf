"""Typed answers: a type as JSON Schema, and values in texts.

Begin with `schema`, which makes JSON Schema of `{type: date}`; `json_schema` checks a schema;
`parse` makes a value of a text; `values` finds numbers and dates.
"""
