"""Where answers are lost: what became of each example's proof, from stage to stage.

It reads runs and their tasks' data, and divides documents again by the cache. Begin with `collect`,
which makes a trace an example (`example_trace`); `counts` adds them up.
"""
