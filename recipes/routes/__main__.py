"""Runs the recipe: `python -m recipes.routes SETTINGS --out FOLDER`."""

from recipes.command import main

main("routes")
