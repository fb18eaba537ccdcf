"""Runs the recipe: `python -m recipes.choices SETTINGS --out FOLDER`."""

from recipes.command import main

main("choices")
