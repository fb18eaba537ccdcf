"""Runs the recipe: `python -m recipes.verdicts SETTINGS --out FOLDER`."""

from recipes.command import main

main("verdicts")
