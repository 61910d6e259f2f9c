"""The one model of plain data from which picture, widget, page and text are made; `build` puts its parts together.

`overview` is the part that only large reports have.
"""
