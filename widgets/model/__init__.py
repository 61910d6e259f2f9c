"""Makes the plain data that the picture, the widget and the page show; the terminal text uses some parts, too.

`build` makes the model of a Report from the parts that the other modules make, `ranks` that of a RanksReport.
"""
