"""Guards in readable form, and the reasons of recompiles as facts.

They come from two texts of Dynamo: the guard tree (`dynamo_cpp_guards_str`), and the reasons of a recompile (a JSON list; from
torch 2.11 on, a single reason is plain text).
"""

from __future__ import annotations

import functools
import json
import re

from dynascope.compiler.report import FailedGuard, FailedGuardKind

#: how a reason of a recompile begins: the id of the compile whose guard failed, `0/1` or, in compiled autograd, `!2/0/1`
COMPILE = re.compile(r"^(?P<id>(?:!\d+/)?\d+/\d+): ")
_GUARD = re.compile(r"^(?P<bars>[| ]*)\+- (?P<kind>[A-Z_]+): (?P<text>.*)$", re.M)
_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*?), (?P<type>\w+), .*?torch\.(?P<dtype>\w+), device=(?P<device>[^,]+), "
    r"requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\]"
)
#: kinds of guards that, outside the tree, are conditions on symbols (sizes, numbers); Dynamo checks them last
ON_SYMBOLS = ("LAMBDA_GUARD", "SYMBOLIC_SHAPE_GUARD")
#: kinds of guards that Dynamo adds for itself, such as those on types, identities, global state and marks of dynamic sizes
NOISE = frozenset({
    "ID_MATCH", "TYPE_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD", "NO_HASATTR", "DICT_CONTAINS", "NO_TENSOR_ALIASING",
    "LAMBDA_GUARD", "GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE", "DUAL_LEVEL_MATCH",
    "DETERMINISTIC_ALGORITHMS", "CLASS_MATCH", "CLOSURE_MATCH", "FUNCTION_MATCH", "MODULE_MATCH",
    "CONSTANT_SUBCLASS_MATCH", "WEAKREF_ALIVE", "DYNAMIC_INDICES",
})  # fmt: skip
_LIMIT = 200


def guards(text: str) -> list[str]:
    """The guards on the user's data, readable, in order, each once, at most `_LIMIT` of them.

    Guards of the kinds in `NOISE` are left out, except conditions on symbols.  If a guard that is left out fails, the
    recompile's reason says so.
    """
    readable: dict[str, None] = {}
    for match in _GUARD.finditer(text):
        on_symbols = match["kind"] in ON_SYMBOLS and not match["bars"]
        if (on_symbols or match["kind"] not in NOISE) and (words := as_written(split_comment(match["text"])[0])):
            readable[words] = None
            if len(readable) == _LIMIT:
                break
    return list(readable)


def split_comment(text: str) -> tuple[str, str]:
    """A guard's condition, and what torch prints beside it, which is usually the line that made the guard."""
    condition, *comment = re.split(r"\s{2,}(?=# )", text, maxsplit=1)
    return condition.strip(), comment[0] if comment else ""


def as_written(text: str) -> str:
    """A guard's condition in readable form."""
    tensor = _TENSOR.match(text)
    if tensor:
        grad = ", requires grad" if tensor["grad"] == "True" else ""
        device = "" if tensor["device"] == "None" else f" on device {tensor['device']}"
        return f"{user_expression(tensor['source'])} is a {tensor['dtype']} tensor of shape [{tensor['size']}]{device}{grad}"
    return user_expression(text)


@functools.lru_cache(8192)
def user_expression(text: str) -> str:
    """An expression of Dynamo's as the user writes it: `L['x']` and `G['x']` become `x`."""
    text = re.sub(r"L\['(\w+)'\]", r"\1", text)
    text = re.sub(r"\b___stack(\d+)\b", r"stack[\1]", text)  # values on Python's stack where a resume function continues
    text = re.sub(r"G\['___unnamed_scope_\w+'\]", "G", text)  # globals of another module than the frame's
    text = re.sub(r"G\['(\w+)'\]", r"\1", text)
    text = re.sub(r"\b__builtins_dict___\d+", "__builtins__", text)  # numbers and addresses differ from run to run
    text = re.sub(r"(?<=\w)_\d{9,}(?:_c\d+)?\b", "", text)
    text = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", text)
    return re.sub(r"__import_(\w+?)(?=\W|$)", lambda m: m.group(1).replace("_dot_", "."), text)


def recompile_texts(text: str) -> list[str]:
    """The reasons of a recompile, one for each compiled version that was tried, each with the stack that torch adds."""
    try:
        data = json.loads(text)
    except ValueError:  # torch 2.11 and later write a single reason as plain text
        data = text
    return [str(r) for r in (data if isinstance(data, list) else [data]) if str(r).strip()]


def without_stack(reason: str) -> str:
    """A reason of a recompile without the stack that torch adds."""
    return reason.split("\nUser stack trace:", 1)[0].strip()


#: torch's messages for failed guards; `n` is the guarded expression, `i` a dimension, `a` the expected value, `b` the actual
#: value; for another object, `a` is the type of the expected one; for a range, `a` and `b` are its ends; for a new attribute,
#: `b` is its name; for global state, `n` is what changed
_FAILED: list[tuple[re.Pattern[str], FailedGuardKind]] = [
    (re.compile(r"tensor '(?P<n>.+?)' size mismatch at index (?P<i>\d+)\. expected (?P<a>\S+), actual (?P<b>\S+)"), "size"),
    (re.compile(r"tensor '(?P<n>.+?)' dtype mismatch\. expected (?P<a>\S+), actual (?P<b>\w+)"), "dtype"),
    (re.compile(r"tensor '(?P<n>.+?)' rank mismatch\. expected (?P<a>\S+), actual (?P<b>\S+)"), "rank"),
    (re.compile(r"tensor '(?P<n>.+?)' stride mismatch at index (?P<i>\d+)\. expected (?P<a>\S+), actual (?P<b>\S+)"),
     "stride"),
    (re.compile(r"tensor '(?P<n>.+?)' requires_grad mismatch(?:\. expected requires_grad=(?P<a>0|False))?"), "requires_grad"),
    (re.compile(r"tensor '(?P<n>.+?)' dispatch key set mismatch\. expected (?P<a>.+?), actual (?P<b>.+)"), "tensor class"),
    (re.compile(r"Unexpected recompilation: runtime guards failed"), "none found"),
    (re.compile(r"tensor '(?P<n>.+?)' device mismatch"), "device"),
    (re.compile(r"expected type of '(?P<n>.+?)' to be a tensor type, .*?but found (?P<b>.+)"), "not a tensor"),
    (re.compile(r"___check_type_id\((?P<n>.+?), \d+\)"), "type"),
    (re.compile(r"___check_obj_id\((?P<n>.+?), \d+\)(?:, type=<\w+ '(?:[^']*\.)?(?P<a>[^'.]+)'>)?"), "object"),
    (re.compile(r"^len\((?P<n>[^()]+)\) [!=]= (?P<a>\S+)$"), "length"),
    (re.compile(r"^not (?P<n>[\w.'\[\]]+)$"), "not empty"),
    (re.compile(r"^(?P<n>[\w.'\[\]]+) is None$"), "none"),
    (re.compile(r"^not ___dict_contains\('(?P<b>\w+)', (?P<n>.+?)\.__dict__\)$"), "new attribute"),
    (re.compile(r"GLOBAL_STATE changed: (?P<n>.+)"), "global state"),
    (re.compile(r"___check_global_state"), "global state"),
    (re.compile(r"^(?P<n>[\w.'\[\]]+) == (?P<a>\S+)"), "value"),
    (re.compile(r"^(?P<a>[-\w.]+) <= (?P<n>\S+) <= (?P<b>[-\w.]+)"), "range"),
    (re.compile(r"^(?P<a>[-\w.]+) <= (?P<n>\S+)"), "minimum"),
]  # fmt: skip


def failed_guard(reason: str) -> FailedGuard:
    """One reason of a recompile as facts; only its expression, as the user writes it, if no pattern matches."""
    text = split_comment(COMPILE.sub("", reason))[0]
    for pattern, kind in _FAILED:
        match = pattern.search(text)
        if match:
            facts = {k: user_expression(v) for k, v in match.groupdict().items() if v is not None}
            if kind == "requires_grad":  # `a` is captured only if torch expected False
                facts["a"], facts["b"] = ("False", "True") if "a" in facts else ("True", "False")
            return FailedGuard(
                kind=kind, source=facts.get("n"), dimension=int(facts["i"]) if "i" in facts else None,
                before=facts.get("a"), now=facts.get("b"),
            )  # fmt: skip
    return FailedGuard(kind="expression", text=user_expression(text))
