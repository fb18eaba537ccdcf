"""Runs the recipe: `python -m recipes.plots SETTINGS --out FOLDER`."""

from recipes.command import main

main("plots")
