"""Runs the recipe: `python -m recipes.polarity SETTINGS --out FOLDER`."""

from recipes.command import main

main("polarity")
