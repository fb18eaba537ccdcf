"""Runs the recipe: `python -m recipes.summaries SETTINGS --out FOLDER`."""

from recipes.command import main

main("summaries")
