"""Measures the data of tasks: lengths and places of answers, and the form of predictions.

It reads tasks and the predictions of runs. Begin with `analyze`; `statistics` defines the numbers.
"""
