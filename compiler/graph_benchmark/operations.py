"""What the text of a graph may call: operations on tensors, looked up by name; everything else is refused in one sentence.

A graph's text may come from a file, so what it may call is a list of what is allowed, not of what is not: torch's own
operators (`torch.ops.aten`, `torch.ops.prims`) that take or make a tensor, the functions that stand for them, the control flow
that Dynamo captures, and the functions that it writes into graphs, by name.  A graph that was recorded in this process may
call the program's own operators, too.
"""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable
from typing import Any


class NotRunnable(ValueError):
    """Why a graph cannot be run again, in one sentence."""


Operation = Callable[..., Any]

#: where torch's functions on tensors are found by name
_NAMESPACES = frozenset({
    "torch", "torch.functional", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.sparse",
    "torch.nested", "torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._sparse",
    "torch._C._nested",
})  # fmt: skip
#: whose public functions written in Python all work on tensors
_PYTHON = ("torch.functional", "torch.nn.functional")
#: further functions that Dynamo writes into graphs
_FUNCTIONS = frozenset(
    [f"torch.{name}" for name in (
        "tensor", "asarray", "as_tensor", "_check", "_check_is_size", "_check_index", "_check_value", "_check_type",
        "_check_not_implemented", "_check_tensor_all", "_assert", "sym_constrain_range", "sym_constrain_range_for_size",
        "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum", "_sym_sqrt",
        "promote_types", "result_type", "can_cast", "is_tensor", "broadcast_shapes",
    )]
    + [f"torch._C.{name}" for name in (
        "_set_grad_enabled", "_log_api_usage_once", "_set_fwd_grad_enabled", "_enter_dual_level", "_exit_dual_level",
        "_autograd._saved_tensors_hooks_disable", "_autograd._saved_tensors_hooks_enable", "_autograd._get_data_attr",
    )]
    + [f"torch._C._functorch.{name}" for name in (
        "_add_batch_dim", "_remove_batch_dim", "_vmap_increment_nesting", "_vmap_decrement_nesting",
        "_grad_increment_nesting", "_grad_decrement_nesting", "_jvp_increment_nesting", "_jvp_decrement_nesting",
        "_wrap_for_grad", "_unwrap_for_grad", "_unwrap_batched", "set_inplace_requires_grad_allowed", "unwrap_if_dead",
        "is_batchedtensor", "current_level", "maybe_current_level", "get_unwrapped",
    )]
    + [f"torch._functorch.predispatch.{name}" for name in (
        "_add_batch_dim", "_remove_batch_dim", "_vmap_increment_nesting", "_vmap_decrement_nesting",
        "_jvp_increment_nesting", "_jvp_decrement_nesting", "_unwrap_for_grad", "_make_dual", "_unpack_dual",
        "_enter_dual_level", "_exit_dual_level", "lazy_load_decompositions",
    )]
    + [f"torch._functorch.{name}" for name in (
        "vmap.lazy_load_decompositions", "eager_transforms._autograd_grad", "eager_transforms._set_tensor_requires_grad",
        "eager_transforms._any_differentiable", "eager_transforms._is_differentiable",
    )]
    + [
        "torch.autograd.grad_mode._enter_inference_mode", "torch.autograd.grad_mode._exit_inference_mode",
        "torch.autograd.forward_ad._maybe_load_decompositions", "torch.amp.autocast_mode._enter_autocast",
        "torch.amp.autocast_mode._exit_autocast", "torch.ops.aten._assert_scalar", "torch.ops.aten._assert_scalar.default",
        "torch.ops.aten.sym_constrain_range.default", "torch.ops.aten.sym_constrain_range_for_size.default",
    ]
)  # fmt: skip
#: control flow and regions that Dynamo captures
_REGIONS = frozenset({
    "associative_scan", "autograd_function_apply", "cond", "foreach_map", "hints_wrapper", "invoke_subgraph", "map_impl",
    "scan", "strict_mode", "tag_activation_checkpoint", "while_loop", "while_loop_stack_output", "wrap",
    "wrap_activation_checkpoint", "wrap_with_autocast", "wrap_with_set_grad_enabled",
})  # fmt: skip
#: Inductor writes their options into the code that it makes, so they are taken from no file
_TEMPLATES = frozenset({"flex_attention", "flex_attention_backward"})
#: calls a kernel of the program's own, by its number in this process
_KERNELS = "triton_kernel_wrapper"
#: Dynamo's wrappers of NumPy's functions, operators and methods: `wrapped_sum` may be `numpy.sum` or a method of an array
_NUMPY = "torch__dynamo_utils_"
#: operators that wait for other processes
_DISTRIBUTED = re.compile(r"c10d|\bfsdp\b|symm_mem|\.distributed\.")
#: methods of a tensor that work on tensors, but are no operators of torch
_METHODS = frozenset({
    "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "dim_order", "double", "float", "half", "int", "long", "lu",
    "ndimension", "nelement", "new_tensor", "short", "to_sparse_coo", "tolist", "type", "unique", "xpu",
})  # fmt: skip
#: what of a tensor is read without a call
ATTRIBUTES = frozenset({
    "H", "T", "data", "device", "dtype", "grad", "imag", "is_cpu", "is_cuda", "is_leaf", "is_meta", "is_mkldnn", "is_mps",
    "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_xpu", "itemsize", "layout", "mH", "mT", "nbytes", "ndim",
    "real", "requires_grad", "shape",
})  # fmt: skip
_BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "sum"})
_BINARY = frozenset({
    "add", "and", "eq", "floordiv", "ge", "getitem", "gt", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "or", "pow",
    "rshift", "sub", "truediv", "xor",
})  # fmt: skip
_UNARY = frozenset({"abs", "index", "inv", "invert", "neg", "not", "pos"})
#: the names of the functions in Python's `operator` that take tensors and numbers
_OPERATOR = frozenset(
    [name + "_" * (name in ("and", "or", "not")) for name in _BINARY | _UNARY]
    + [f"i{name}" for name in _BINARY - {"eq", "ne", "lt", "le", "gt", "ge", "getitem"}]
    + ["setitem", "truth", "is_", "is_not", "contains"]
)


def operation(name: str, own: bool = True) -> Operation:
    """The operation that a graph's text calls by this name; raises NotRunnable for anything else.

    `own`: whether the program's own operators may be called; for text from a file they may not.
    """
    if _DISTRIBUTED.search(name):
        raise NotRunnable(f"it calls {name}, which waits for other processes")
    space, _, last = name.rpartition(".")
    if last.startswith(_KERNELS):
        raise NotRunnable("it calls a Triton kernel of the program's own, which the report does not keep")
    if last.startswith(_NUMPY):
        raise NotRunnable(
            f"it calls NumPy ({last.removeprefix(_NUMPY)}), and its text does not tell which of NumPy's functions"
        )
    found = _plain(name) if not space else _of_torch(name, space, own)
    if found is None:
        raise NotRunnable(f"it calls {name}, which is no operation on tensors that a report could run, or not of this torch")
    return found


def method(name: str) -> Operation:
    """A method of torch.Tensor, which refuses all that is no tensor; raises NotRunnable for what is no operation."""
    import torch

    found: Any = getattr(torch.Tensor, name, None)
    known = callable(found) and not name.startswith("_") and name != "backward"
    if known and (name in _METHODS or _is_operator(getattr(torch.ops.aten, name, None))):
        return found  # type: ignore[no-any-return]
    raise NotRunnable(f"it calls {name}() of a tensor, which is none of the methods that a report could run")


def special_method(name: str) -> tuple[Operation, bool] | None:
    """`__add__` as Python's operator, and whether its arguments change places (`__radd__`); None for no such method."""
    plain = name.removeprefix("__").removesuffix("__")
    if plain == name or f"__{plain}__" != name:
        return None
    if plain.startswith("r") and plain.removeprefix("r") in _BINARY:
        return _operator(plain.removeprefix("r")), True
    return (_operator(plain), False) if {plain, plain + "_"} & _OPERATOR else None


def _operator(name: str) -> Operation:
    return getattr(operator, name if hasattr(operator, name) else name + "_")  # type: ignore[no-any-return]


def _plain(name: str) -> Operation | None:
    """What is not torch's: `len`, `math_sqrt`, `_operator_abs`."""
    if name in _BUILTINS:
        return getattr(builtins, name)  # type: ignore[no-any-return]
    if name.startswith("_operator_") and name.removeprefix("_operator_") in _OPERATOR:
        return _operator(name.removeprefix("_operator_"))
    if name.startswith("math_") and not name.startswith("math__"):
        found = getattr(math, name.removeprefix("math_"), None)
        return found if callable(found) else None
    return None


def _of_torch(name: str, space: str, own: bool) -> Operation | None:
    if name in _FUNCTIONS:
        return _found(name)
    if name.startswith("torch.ops."):
        return _registered(name, own)
    if space not in _NAMESPACES:
        return None
    import torch

    found = _found(name)
    if isinstance(found, type(torch.relu)):  # made of an operator
        return found if _is_operator(getattr(torch.ops.aten, found.__name__, None)) else None
    is_public = callable(found) and not isinstance(found, type) and not getattr(found, "__name__", "_").startswith("_")
    return found if is_public and getattr(found, "__module__", None) in _PYTHON else None


def _registered(name: str, own: bool) -> Operation | None:
    """`torch.ops.aten.add.Tensor`, `torch.ops.higher_order.cond`, `torch.ops.mine.op`."""
    import torch

    _, _, namespace, *rest = name.split(".")
    if namespace == "higher_order":
        last = rest[-1] if len(rest) == 1 else ""
        if last in _TEMPLATES and not own:
            raise NotRunnable(f"it calls {name}, whose options become code, and so are not taken from a report that was loaded")
        return _found(name) if last in _REGIONS | _TEMPLATES else None
    found = _found(name)
    if not isinstance(found, (type(torch.ops.aten.relu), type(torch.ops.aten.relu.default))):
        return None
    if namespace in ("aten", "prims"):
        return found if _is_operator(found) else None
    if not own:
        raise NotRunnable(f"it calls {name}, and a report that was loaded may call torch's own operators only")
    return found if namespace != "prim" else None


def is_own(name: str) -> bool:
    """Whether a name is that of an operator that the program, or another library, has registered."""
    parts = name.split(".")
    return parts[:2] == ["torch", "ops"] and len(parts) > 3 and parts[2] not in ("aten", "prims", "higher_order")


def _is_operator(found: Any) -> bool:
    """Whether torch's operator takes or makes a tensor, and no file."""
    import torch

    if isinstance(found, type(torch.ops.aten.relu)):
        return any(_is_operator(getattr(found, overload)) for overload in found.overloads())
    if not isinstance(found, type(torch.ops.aten.relu.default)):
        return False
    arguments = found._schema.arguments
    values = [*arguments, *found._schema.returns]
    return any("Tensor" in str(v.type) for v in values) and not any("file" in v.name or "path" in v.name for v in arguments)


def _found(name: str) -> Operation | None:
    import torch

    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found if callable(found) else None
