"""The colors of boxes, arrows and text: distinguishable with color blindness, and readable on light and dark backgrounds.

Promises: static pictures, which cannot use the host's variables, and the style sheet (`css_rules`) use the same values.  Color
is never the only sign: graphs are also numbered, and states are also named.
"""

from __future__ import annotations

import re
from typing import Final

#: (line, tint) of graph 0, 1, 2, ...; repeated after the last
GRAPHS_LIGHT: Final = (
    ("#0067a8", "#e2eff9"), ("#00755a", "#dff3ec"), ("#8250b0", "#f0e8f7"),
    ("#8a6400", "#f8efd6"), ("#a8326e", "#fae6f0"), ("#33658a", "#e6edf3"),
)  # fmt: skip
GRAPHS_DARK: Final = (
    ("#5cb8f0", "#10283b"), ("#3fd0a0", "#0f2f28"), ("#c8a0ea", "#2a2037"),
    ("#e8c15a", "#332a10"), ("#f08bbd", "#381c2b"), ("#9fc0d8", "#1d2a35"),
)  # fmt: skip
LIGHT: Final = {
    "bg": "#ffffff", "panel": "#f7f8fa", "ink": "#1b1f24", "soft": "#59626d", "line": "#ccd2da", "accent": "#0757b8",
    "break": "#a83803", "break-tint": "#fdeee6", "skip": "#5f6873", "skip-tint": "#eceef1", "good": "#1a7038",
    "error": "#b3141f", "error-tint": "#fdeaea", "heat": "#ffb52e",
    "open": "#566500", "open-tint": "#f2f6d8",
}  # fmt: skip
DARK: Final = {
    "bg": "#111418", "panel": "#181c22", "ink": "#e6e9ee", "soft": "#a3adb8", "line": "#414a55", "accent": "#77b8ff",
    "break": "#ff9a66", "break-tint": "#392014", "skip": "#a0a9b4", "skip-tint": "#242a31", "good": "#5fd38a",
    "error": "#ff8d8d", "error-tint": "#3b191b", "heat": "#7f4200",
    "open": "#b9cf52", "open-tint": "#22280f",
}  # fmt: skip


#: CSS variables of VS Code, JupyterLab and Colab that override background and text color.  VS Code comes first: in every theme,
#: its Jupyter extension also sets those of JupyterLab, to the colors of a light page.
_HOSTS: Final = {
    "bg": "var(--vscode-editor-background, var(--jp-layout-color0, var(--colab-primary-surface-color, {})))",
    "ink": "var(--vscode-editor-foreground, var(--jp-content-font-color1, var(--colab-primary-text-color, {})))",
}


_FONTS: Final = {
    "ui": "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
    "code": "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
}


#: the shapes of graphs have the color of their graph
_TONE = ".dyn-picture .dyn-g{0} .dyn-main{{fill:var(--dyn-g{0}-tint);stroke:var(--dyn-g{0});stroke-dasharray:none}}"
TONES = "".join(map(_TONE.format, range(len(GRAPHS_LIGHT))))


def literal(picture: str) -> str:
    """A picture for places that do not have the variables of `css_rules`: with the light colors in their place."""
    colours = dict(pair.split(":") for pair in _variables(LIGHT | _FONTS, GRAPHS_LIGHT).split(";"))
    return re.sub(r"var\((--dyn-[\w-]+)\)", lambda name: colours[name[1]], picture)


def css_rules() -> str:
    """The colors as CSS variables of the view, for both themes; print always uses the light one."""
    themes = ((LIGHT, GRAPHS_LIGHT), (DARK, GRAPHS_DARK))
    light, dark = (
        _variables({name: _HOSTS.get(name, "{}").format(value) for name, value in own.items()}, graphs)
        for own, graphs in themes
    )
    tone = ".dyn-tone-{0}{{--dyn-tone:var(--dyn-g{0});--dyn-tint:var(--dyn-g{0}-tint)}}"
    tones = "".join(map(tone.format, range(len(GRAPHS_LIGHT))))
    return f'.dyn{{{light}}}\n@media not print{{.dyn[data-theme="dark"]{{{dark}}}}}\n' + tones + TONES


def _variables(colours: dict[str, str], graphs: tuple[tuple[str, str], ...]) -> str:
    """`--dyn-ink:#1b1f24;...` of one theme."""
    pairs = [(f"--dyn-{name}", value) for name, value in colours.items()]
    for number, (line, tint) in enumerate(graphs):
        pairs += [(f"--dyn-g{number}", line), (f"--dyn-g{number}-tint", tint)]
    return ";".join(f"{name}:{value}" for name, value in pairs)
