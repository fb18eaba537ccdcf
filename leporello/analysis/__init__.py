"""Analyses of finished runs and of tasks: compare, explain, score, export, analyze.

They read the files of runs and tasks without changing them; models only render prompts. Begin
with `score`, then `comparison`, which compares pipelines, and `funnel`, which locates lost answers.
"""
