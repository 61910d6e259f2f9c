"""How a module names the functions of torch, and the import that a new name needs."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.syntax.names import bound_in, dotted
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source


def imports(source: Source, scope: cst.FunctionDef | cst.Module) -> dict[str, str]:
    """Names that imports of the module and of this scope bind -> their full dotted names."""
    found: dict[str, str] = {}
    for node in source.all_of(cst.Import):
        if source.scope_of(node) in (source.module, scope):
            for alias in node.names:
                full = dotted(alias.name)
                if alias.asname is not None:
                    found[dotted(alias.asname.name)] = full
                else:
                    found[full.split(".")[0]] = full.split(".")[0]
    for origin in source.all_of(cst.ImportFrom):
        if source.scope_of(origin) in (source.module, scope) and not isinstance(origin.names, cst.ImportStar):
            base = dotted(origin.module) if origin.module is not None else ""
            for alias in origin.names:
                name = dotted(alias.asname.name) if alias.asname else dotted(alias.name)
                found[name] = ("." if origin.relative else "") + f"{base}.{dotted(alias.name)}"
    return found


class Torch:
    """How code in one scope names a function of torch, and the import that it needs for that."""

    def __init__(self, source: Source, scope: cst.FunctionDef | cst.Module) -> None:
        self.source, self.scope = source, scope
        self.imports = imports(source, scope)
        local = bound_in(scope) if isinstance(scope, cst.FunctionDef) else set()
        imported = {n for n in self.imports if n not in local or n in uses_of_imports(source, scope)}
        self._module = next((n for n in self.imports if n in imported and self.imports[n] == "torch"), None)
        self._imported = imported
        self._local = local
        self.needs_import = False

    def __call__(self, name: str) -> str:
        """How the code names this function: for "where", `torch.where`, `th.where` or `where`, as imported."""
        if self._module is not None:
            return f"{self._module}.{name}"
        direct = next((n for n in self._imported if self.imports[n] == f"torch.{name}"), None)
        if direct is not None:
            return direct
        # a `torch` in the text, other than in `from torch import nn`, is bound somewhere, perhaps in an earlier cell
        is_used = any(n.value == "torch" and not self._is_imported_from(n) for n in self.source.all_of(cst.Name))
        self.needs_import = not is_used or "torch" in self._local
        return f"torch.{name}"

    def _is_imported_from(self, name: cst.Name) -> bool:
        return any(isinstance(a, cst.ImportFrom) for a in self.source.ancestors(name))

    def changes(self) -> list[Change]:
        """The import to add, if the code needs one."""
        if not self.needs_import:
            return []
        at = 1
        for statement in self.source.module.body:
            head = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
            docstring = isinstance(head, cst.Expr) and isinstance(head.value, cst.SimpleString | cst.ConcatenatedString)
            future = isinstance(head, cst.ImportFrom) and head.module is not None and dotted(head.module) == "__future__"
            if not docstring and not future:
                at = self.source.first_line(statement)
                break
        start = self.source.line_start(at)
        return [(start, start, "import torch\n")]

    def is_torch(self, function: cst.BaseExpression) -> str | None:
        """The full name of a function of torch (`torch.nn.functional.relu`); None for others."""
        name = dotted(function)
        first, _, rest = name.partition(".")
        full = self.imports.get(first, "torch" if first == "torch" else "")
        if full == "torch" or full.startswith("torch."):
            return f"{full}.{rest}" if rest else full
        return None


def uses_of_imports(source: Source, scope: cst.FunctionDef | cst.Module) -> set[str]:
    """Names that `import` statements of a scope bind, without `from` imports."""
    inside = [n for n in source.all_of(cst.Import) if source.scope_of(n) is scope]
    return {dotted(a.asname.name) if a.asname else dotted(a.name).split(".")[0] for n in inside for a in n.names}
