"""Finds tokens, sentences, headings, names and answers in a text, always as exact spans.

It may import `core` and `models` (for tokenizers), and opens no files: functions take a text and
return offsets. Start with `tokens` and `sentences`; `headings` is a separate folder.
"""
