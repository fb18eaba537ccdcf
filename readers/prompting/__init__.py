"""Prompts of language models: template, chat, few-shot examples, input window.

Begin with `prompted_reader`, which combines them; `prompted_model` adds a local model; only
`window` cuts text.
"""
