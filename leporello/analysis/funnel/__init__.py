"""Finds the stages that lose answers, by tracing each example's evidence through the pipeline.

It reads runs and their tasks' data, and chunks documents again with the cache. Begin with
`collect`, which makes one trace per example (`example_trace`); `counts` adds them up.
"""
