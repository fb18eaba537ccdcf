"""From a read to the model's input: template, chat, few-shot examples, window.

Begin with `prompted_reader`, which joins the others; `prompted_model` adds a model that runs here;
`window` is the only place where text is cut.
"""
