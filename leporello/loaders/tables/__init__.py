"""Tables: a line for each row, whose cells say what column they stand in."""
