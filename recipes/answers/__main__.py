"""Runs the recipe: `python -m recipes.answers SETTINGS --out FOLDER`."""

from recipes.command import main

main("answers")
