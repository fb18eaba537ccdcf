"""Lists of names, pages of classes, and the JSON Schema of configs."""
