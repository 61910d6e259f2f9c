"""dynascope: see and steer what torch.compile does, inside the notebook.  `compiler` and `widgets` are its subpackages.

Importing this package loads neither torch nor IPython; the API is loaded on first use.

`api` is the Python API; `magics` has the magics, with the flags of `options`; `cli` is the command line, which also
runs scripts.  `ranks` records each rank of a job.  `pytest_plugin` runs notebooks as tests and has a fixture
for expectations.  `shell` gets the ids, counts and texts of cells from IPython.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynascope.compiler import __version__
from dynascope.compiler.formats import FORMATS

if TYPE_CHECKING:
    from dynascope.api import compile, explain, last, load, observe, record_ranks, region

__all__ = ["__version__", "compile", "explain", "last", "load", "observe", "record_ranks", "region"]

FORMATS |= {
    "html": "dynascope.widgets.render.page:to_html",
    "svg": "dynascope.widgets.render.picture:to_svg",
    "dot": "dynascope.widgets.render.picture:to_graphviz",
    "txt": "dynascope.widgets.render.text:to_text",
    "details": "dynascope.widgets.render.text:to_details",
    "view": "dynascope.widgets.view:View",
    "mimebundle": "dynascope.widgets.render.static_output:to_mimebundle",
    "headline": "dynascope.widgets.features.summary:headline",
    "unmet": "dynascope.widgets.features.comparisons:unmet",
    "fixed": "dynascope.compiler.lab.fix.result:fixed",
    "run_graph": "dynascope.compiler.lab.graph_run:run_in_report",
    "ranks html": "dynascope.widgets.render.ranks_page:to_html",
    "ranks mimebundle": "dynascope.widgets.render.ranks_page:to_mimebundle",
    "ranks view": "dynascope.widgets.view:RanksView",
    "ranks txt": "dynascope.widgets.features.ranks:to_text",
    "ranks headline": "dynascope.widgets.features.ranks:headline",
    "ranks unmet": "dynascope.widgets.features.ranks:not_alike",
    "diff dict": "dynascope.widgets.features.comparisons:diff_dict",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        from dynascope import api

        return getattr(api, name)
    raise AttributeError(f"module 'dynascope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext dynascope`."""
    from dynascope import magics

    magics.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext dynascope`."""
    from dynascope import magics

    magics.unload(shell)
