"""Lists of what can be named, the page of a class, and the JSON Schema of configs."""
