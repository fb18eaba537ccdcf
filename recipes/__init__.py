"""Recipes that train the models of this package from data files.

Run one from a checkout: `python -m recipes.answers SETTINGS --out FOLDER`. No wheel contains them.

A recipe is a package whose module `recipe` has the class of its settings as `SETTINGS` and
`train(settings, folder)`, which writes the model and returns its record; a recipe that can be
resumed has `run(settings, out)` instead. `PARAMETER` is the parameter of a stage that
takes the model (default: `reader.model`), and `MODEL` the path below `--out` for this parameter.
Begin with `command.run_recipe`.
"""
