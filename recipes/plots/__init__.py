"""The recipe of the reader `Precedence`: summaries of stories to weights of words."""
