"""Runs the recipe: `python -m recipes.confidence SETTINGS --out FOLDER`."""

from recipes.command import main

main("confidence")
