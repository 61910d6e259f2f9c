"""What the pictures show: boxes, folds and colors of the split graph (`split_graph`, `shapes`, `fold`) and of FX graphs.

`shapes` decides how a frame, graph or break looks, `split_graph` which of them are drawn and how they are joined; `split_svg`
draws them.
"""
