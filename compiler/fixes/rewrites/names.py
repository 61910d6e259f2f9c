"""Which names code reads and binds, what it does besides computing values, and what the module calls torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from dynascope.compiler.fixes.rewrites.source_text import Change, Source

#: calls of these do not change anything; of a method: on whatever object
_PURE_BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "float",
        "getattr",
        "hasattr",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "pow",
        "range",
        "round",
        "str",
        "sum",
        "tuple",
        "zip",
        "enumerate",
    ]
)
_CHANGING_METHODS = frozenset(
    [
        "append",
        "extend",
        "update",
        "pop",
        "popitem",
        "insert",
        "remove",
        "discard",
        "clear",
        "setdefault",
        "write",
        "writelines",
        "flush",
        "put",
        "send",
        "close",
        "backward",
        "step",
        "zero_grad",
        "register_hook",
    ]
)
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "seed", "exponential", "uniform", "rrelu")
_CHANGING_TORCH = ("set_", "save", "manual_", "seed", "compile", "_assert", "_check", "load")


class Uses(cst.CSTVisitor):
    """Names and effects of some code; nested functions count as read where they are defined."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        #: stores to attributes and items, deletions, `global`, imports
        self.stores: list[cst.CSTNode] = []
        #: return, raise, break, continue, yield, await
        self.jumps: list[cst.CSTNode] = []
        self.calls: list[cst.Call] = []
        self._depth = 0

    def visit_Name(self, node: cst.Name) -> None:
        self.reads.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            node.default.visit(self)
        return False

    def visit_Annotation(self, node: cst.Annotation) -> bool:
        return False

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def _bind(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            if not self._depth:
                self.writes.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)
        else:
            self.stores.append(target)
            target.visit(self)

    def visit_Assign(self, node: cst.Assign) -> bool:
        for target in node.targets:
            self._bind(target.target)
        node.value.visit(self)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            self._bind(node.target)
            node.value.visit(self)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> bool:
        self._bind(node.target)
        node.target.visit(self)
        node.value.visit(self)
        return False

    def visit_For(self, node: cst.For) -> bool:
        self._bind(node.target)
        node.iter.visit(self)
        node.body.visit(self)
        if node.orelse is not None:
            node.orelse.visit(self)
        return False

    def visit_AsName(self, node: cst.AsName) -> bool:
        self._bind(node.name)
        return False

    def visit_NamedExpr(self, node: cst.NamedExpr) -> bool:
        self._bind(node.target)
        self.stores.append(node)
        node.value.visit(self)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._bind(node.name)
        for decorator in node.decorators:
            decorator.visit(self)
        node.params.visit(self)
        self._depth += 1
        jumps = list(self.jumps)
        node.body.visit(self)
        self.jumps = jumps
        self._depth -= 1
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._bind(node.name)
        self.stores.append(node)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        node.params.visit(self)
        node.body.visit(self)
        return False

    def visit_CompFor(self, node: cst.CompFor) -> bool:
        node.iter.visit(self)
        for test in node.ifs:
            test.visit(self)
        if node.inner_for_in is not None:
            node.inner_for_in.visit(self)
        return False

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        self.stores.append(node)
        name = node.asname.name if node.asname else _first_name(node.name)
        if isinstance(name, cst.Name):
            self._bind(name)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                alias.visit(self)
        return False

    def visit_Del(self, node: cst.Del) -> None:
        self.stores.append(node)

    def visit_Global(self, node: cst.Global) -> bool:
        self.stores.append(node)
        return False

    def visit_Nonlocal(self, node: cst.Nonlocal) -> bool:
        self.stores.append(node)
        return False

    def visit_Return(self, node: cst.Return) -> None:
        self.jumps.append(node)

    def visit_Raise(self, node: cst.Raise) -> None:
        self.jumps.append(node)

    def visit_Break(self, node: cst.Break) -> None:
        self.jumps.append(node)

    def visit_Continue(self, node: cst.Continue) -> None:
        self.jumps.append(node)

    def visit_Yield(self, node: cst.Yield) -> None:
        self.jumps.append(node)

    def visit_Await(self, node: cst.Await) -> None:
        self.jumps.append(node)


def _first_name(name: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(name, cst.Attribute):
        name = name.value
    return name


def uses(*nodes: cst.CSTNode | None) -> Uses:
    """What some code reads, binds and does."""
    result = Uses()
    for node in nodes:
        if node is not None:
            node.visit(result)
    return result


def dotted(expression: cst.BaseExpression) -> str:
    """`a.b.c` as text, "" for anything else."""
    if isinstance(expression, cst.Name):
        return expression.value
    if isinstance(expression, cst.Attribute):
        base = dotted(expression.value)
        return f"{base}.{expression.attr.value}" if base else ""
    return ""


# torch, as the module names it


def imports(source: Source, scope: cst.FunctionDef | cst.Module) -> dict[str, str]:
    """Names that the module (or the function) imports -> what they stand for, with dots."""
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
    """How code at one place writes a function of torch, and the import that it needs for that."""

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
        """`torch.where` in this module's words."""
        if self._module is not None:
            return f"{self._module}.{name}"
        direct = next((n for n in self._imported if self.imports[n] == f"torch.{name}"), None)
        if direct is not None:
            return direct
        self.needs_import = "torch" not in self.source.names or "torch" in self._local
        return f"torch.{name}"

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
                at = self.source.lines(statement)[0]
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
    """Names that imports inside the function bind."""
    inside = [n for n in source.all_of(cst.Import) if source.scope_of(n) is scope]
    return {dotted(a.asname.name) if a.asname else dotted(a.name).split(".")[0] for n in inside for a in n.names}


def bound_in(function: cst.FunctionDef) -> set[str]:
    """All local names of a function."""
    return parameters(function) | uses(function.body).writes


def parameters(function: cst.FunctionDef) -> set[str]:
    given = function.params
    named = [*given.posonly_params, *given.params, *given.kwonly_params]
    stars = [p for p in (given.star_arg, given.star_kwarg) if isinstance(p, cst.Param)]
    return {p.name.value for p in [*named, *stars]}


def names_in_order(source: Source, *nodes: cst.CSTNode) -> list[str]:
    """Each name of some code once, in the order of the text."""
    return list(dict.fromkeys(name.value for one in nodes for name in source.inside(one, cst.Name)))


def unused_name(source: Source, wish: str, *others: str) -> str:
    """The wished name, with a number where the file has one like it."""
    taken = {*source.names, *others}
    number, name = 2, wish
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    return name


# flow


def statements(block: cst.CSTNode | None) -> list[cst.CSTNode]:
    """The statements of a block, also of `if x: a; b` (then the small ones)."""
    if isinstance(block, cst.Else | cst.Finally):
        block = block.body
    return list(block.body) if isinstance(block, cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module) else []


def small(block: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """Statements without their lines: `a = 1; b = 2` are two."""
    return [s for one in block for s in (one.body if isinstance(one, cst.SimpleStatementLine) else [one])]


def certainly_bound(block: Sequence[cst.CSTNode]) -> set[str]:
    """Names that are bound once a block has run to its end."""
    bound: set[str] = set()
    for one in block:
        if isinstance(one, cst.If):
            if one.orelse is not None:
                other = [one.orelse] if isinstance(one.orelse, cst.If) else statements(one.orelse)
                body = statements(one.body)
                sides = [certainly_bound(s) for s in (body, other) if not leaves(s)]
                bound |= set.intersection(*sides) if sides else set()
        elif isinstance(one, cst.With):
            bound |= certainly_bound(statements(one.body)) | uses(*one.items).writes
        elif isinstance(one, cst.Try):
            bound |= certainly_bound(statements(one.finalbody)) | (
                certainly_bound(statements(one.body)) if not one.handlers else set()
            )
        elif not isinstance(one, cst.For | cst.While):
            bound |= uses(one).writes
    return bound


def leaves(block: Sequence[cst.CSTNode]) -> bool:
    """Whether a block ends with return or raise."""
    last = small(block)[-1:]
    return bool(last) and isinstance(last[0], cst.Return | cst.Raise)


def bound_before(source: Source, statement: cst.CSTNode) -> set[str]:
    """Local names that are bound whenever control reaches a statement."""
    scope = source.scope_of(statement)
    bound = parameters(scope) if isinstance(scope, cst.FunctionDef) else set()
    at: cst.CSTNode | None = statement
    while at is not None and at is not scope:
        block = list(source.block_of(at))
        if at in block:
            bound |= certainly_bound(block[: block.index(at)])
        at = source.parent(at)
        if isinstance(at, cst.For):
            bound |= uses(at).writes & targets_of(at)
    return bound


def targets_of(loop: cst.For) -> set[str]:
    """Names that a loop binds in each turn."""
    visitor = Uses()
    visitor._bind(loop.target)
    return visitor.writes


def read_first(block: Iterable[cst.CSTNode], bound: set[str] | None = None) -> set[str]:
    """Names that a block may read before it binds them."""
    bound, read = set(bound or ()), set()
    for one in small(block):
        known = bound
        if isinstance(one, cst.For):
            read |= uses(one.iter).reads - bound
            known = bound | targets_of(one)
        elif isinstance(one, cst.If | cst.While):
            read |= uses(one.test).reads - bound
        elif isinstance(one, cst.With):
            read |= uses(*one.items).reads - bound
            known = bound | uses(*one.items).writes
        if isinstance(one, cst.For | cst.If | cst.While | cst.With):
            read |= read_first(statements(one.body), known)
            other = getattr(one, "orelse", None)
            read |= read_first([other] if isinstance(other, cst.If) else statements(other), bound)
        elif isinstance(one, cst.Try):
            handlers = [(h.type, h.name, statements(h.body)) for h in one.handlers]
            read |= read_first(statements(one.body), bound) | read_first(statements(one.finalbody), bound)
            read |= read_first(statements(one.orelse), bound | certainly_bound(statements(one.body)))
            for kind, name, body in handlers:
                read |= (uses(kind).reads - bound) | read_first(body, bound | uses(name).writes)
        else:
            read |= uses(one).reads - bound
        bound |= certainly_bound([one])
    return read


def read_later(source: Source, *run: cst.CSTNode) -> set[str]:
    """Names that may be read after some statements: below them, in the next turn of a loop, or by a nested function."""
    scope = source.scope_of(run[0])
    start, end = source.start(run[0]), source.end(run[-1])
    if isinstance(scope, cst.Module):
        return uses(*run).writes
    loops = [a for a in source.ancestors(run[0]) if isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope]
    first = source.start(loops[-1]) if loops else end
    read = read_first(run) if loops else set()
    for name in source.inside(scope, cst.Name):
        at = source.start(name)
        if start <= at < end:
            continue
        nested = source.scope_of(name) is not scope or any(isinstance(a, cst.Lambda) for a in source.ancestors(name))
        if at >= first or nested:
            read.add(name.value)
    inside = [n for r in run for n in (*source.inside(r, cst.FunctionDef), *source.inside(r, cst.Lambda))]
    return read | uses(*inside).reads | shared_names(source, scope)


def shared_names(source: Source, scope: cst.CSTNode | None = None) -> set[str]:
    """Names that `global` and `nonlocal` declare, in one scope or anywhere."""
    declared = [g.names for g in source.all_of(cst.Global) if scope in (None, source.scope_of(g))]
    declared += [g.names for g in source.all_of(cst.Nonlocal) if scope in (None, source.scope_of(g))]
    return {item.name.value for names in declared for item in names}


# effects


def is_pure(torch: Torch, *nodes: cst.CSTNode | None, unknown: bool = False) -> bool:
    """Whether code only computes values, without random numbers; `unknown`: calls of functions that are not known may stay."""
    found = uses(*nodes)
    return not found.stores and not found.jumps and all(is_pure_call(torch, c, unknown) for c in found.calls)


def looks_around(*nodes: cst.CSTNode) -> bool:
    """Whether code looks at the function that it stands in, so that it cannot move to one of its own."""
    return bool(uses(*nodes).reads & {"super", "locals", "__class__", "eval", "exec", "vars", "dir"})


def changes_argument(source: Source, at: cst.CSTNode, *nodes: cst.CSTNode) -> bool:
    """Whether code (at some statement) changes in place what the caller gave: `x += 1`, with `x` not bound again before."""
    scope = source.scope_of(at)
    given = parameters(scope) if isinstance(scope, cst.FunctionDef) else set()
    bound = [t.target for t in source.inside(scope, cst.AssignTarget) if source.start(t) < source.start(at)]
    given -= {dotted(target) for target in bound}
    return any(dotted(a.target) in given for node in nodes for a in source.inside(node, cst.AugAssign))


def is_pure_call(torch: Torch, call: cst.Call, unknown: bool = False) -> bool:
    """Whether a call only computes a value."""
    function = call.func
    full = torch.is_torch(function)
    if full is not None:
        last = full.split(".")[-1]
        return not (
            last.endswith("_")
            or any(word in last for word in _RANDOM)
            or last.startswith(_CHANGING_TORCH)
            or full.startswith(("torch._dynamo", "torch.compiler", "torch.distributed", "torch.utils"))
        )
    if any(a.keyword is not None and a.keyword.value in ("out", "inplace") for a in call.args):
        return False
    if isinstance(function, cst.Name):
        return function.value in _PURE_BUILTINS or (
            unknown and function.value not in ("print", "setattr", "exec", "eval", "next")
        )
    if isinstance(function, cst.Attribute):
        method = function.attr.value
        changes = (method.endswith("_") and not method.endswith("__")) or method in _CHANGING_METHODS
        if changes or any(word in method for word in _RANDOM):
            return False
        root = dotted(function).split(".")[0]
        if root in ("logging", "logger", "warnings", "sys", "os", "time", "random"):
            return False
        return unknown or (root not in ("self", "cls", "super") and root not in torch.imports)
    return unknown


def changed_in_place(names: set[str], *nodes: cst.CSTNode) -> bool:
    """Whether code may change an object that one of these names is bound to: `x += 1`, `x[0] = 1`, `x.add_(1)`."""
    watch = _InPlace(names)
    for node in nodes:
        node.visit(watch)
    return watch.found


class _InPlace(cst.CSTVisitor):
    def __init__(self, names: set[str]) -> None:
        self.names, self.found = names, False

    def _touch(self, target: cst.BaseExpression) -> None:
        while isinstance(target, cst.Attribute | cst.Subscript | cst.Call):
            target = target.func if isinstance(target, cst.Call) else target.value
        self.found = self.found or (isinstance(target, cst.Name) and target.value in self.names)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._touch(node.target)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        if not isinstance(node.target, cst.Name):
            self._touch(node.target)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method in _CHANGING_METHODS or (method.endswith("_") and not method.endswith("__")):
                self._touch(node.func)
