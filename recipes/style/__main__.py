"""Runs the recipe: `python -m recipes.style SETTINGS --out FOLDER`."""

from recipes.command import main

main("style")
