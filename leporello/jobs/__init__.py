"""Jobs: a pipeline on a task, with its signature, its shards, and its files in a run's directory.

The package reads and writes files of a run, and does not run pipelines. Start with `jobs`, then
`directory`; `shards` splits a task, and `files` merges the stores into predictions.jsonl.
"""
