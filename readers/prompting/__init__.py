"""Prompts of language models: template, chat, few-shot examples, input window.

Begin with `prompted_reader`; `prompted_model` adds a local model.
"""
