"""What the pictures show: the split graph (`split_graph`, `shapes`), drawn by `split_svg`, and FX graphs (`fx_picture`).

`shapes` decides how a frame, graph or break looks, `split_graph` which of them are drawn and how they are joined; `palette` has
the colors.
"""
