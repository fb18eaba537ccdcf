"""The recipe of the reader `Polarity`: labelled opinions to weights of words."""
