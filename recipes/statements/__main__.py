"""Runs the recipe: `python -m recipes.statements SETTINGS --out FOLDER`."""

from recipes.command import main

main("statements")
