"""dynascope: see and steer what torch.compile does, inside the notebook."""

from dynascope.compiler.report import LOWERINGS

__version__ = "0.1.0"

LOWERINGS.update(
    html="dynascope.widgets.html:to_html",
    svg="dynascope.widgets.picture:to_svg",
    dot="dynascope.widgets.picture:to_dot",
    graphviz="dynascope.widgets.picture:to_graphviz",
    txt="dynascope.widgets.text:to_text",
    mimebundle="dynascope.widgets.static_output:to_mimebundle",
)
