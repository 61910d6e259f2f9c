"""Why no change is offered for a graph break, by its type: what stands in the way, and what to change by hand."""

from __future__ import annotations

from dynascope.compiler.report.overview import ASKED_FOR

#: the reason -> the types
_TYPES = {
    "no known rewrite fits this condition and its sides": ("Data-dependent branching",),
    "a Python value is made from a tensor's values, which the compiler does not have": (
        "Unsupported Tensor.item() call with capture_scalar_outputs=False", "Tensor.tolist() with non-integer tensor",
        "repr() on tensor",
    ),
    "the compiler compares only constants, such as strings": ("sort with non-constant keys", "list_richcompare_nonconst"),
    # the program itself may raise none: Dynamo has no values, and not every method
    "where it is traced, it raises an exception that no traced code catches": ("Observed exception",),
    "addresses are not known to the compiler": ("Data pointer comparison", "Reconstruction of FakeIdVariable"),
    "the result depends on values, which the compiler does not have": ("Dynamic shape operator", "Data dependent operator"),
    "the compiler does not trace this: do it outside of compiled code": (
        "Attempted to call function marked as skipped", "Failed to trace builtin operator", "torch.* op returned non-Tensor",
        "Unsupported method call", "Unsupported function call", "Unhandled args for method", "missing tp_iter",
        "Missing tp_iternext", "setattr() on unsupported type", "An opaque object was created in the middle of the program.",
        "Invalid call to __build_class__", "Attempted to use `torch.nn.Parameter()` constructor with Dynamo",
    ),
    "this context manager cannot be traced: put the `with` around the compiled call": ("Unsupported context manager",),
    "the import fails: try it outside of compiled code": ("Import failure",),
    "copy.deepcopy of a tensor is not captured": ("Attempted to copy.deepcopy a tensor",),
    "sparse tensors cannot be in a graph": ("Attempted to wrap sparse Tensor with VariableTracker",),
    "gradients are computed or asked for inside: do it outside of compiled code": (
        "requires_grad_() intermediate leaked as output", "Unsupported Tensor.backward() call",
        "Unsupported Tensor.requires_grad_() call", "setattr() on Tensor.requires_grad",
    ),
    "a tensor's memory changes: make another": ("Unsupported Tensor.resize_() call", "Failed to mutate tensor data attribute"),
    "torch does not trace this part of NumPy: put it into a custom operator, or outside of compiled code": (
        "attempted to trace numpy function unsupported by PyTorch", "Unsupported ndarray method call", "ndarray.astype(object)",
    ),
    "the code there asks for it": ASKED_FOR,
}  # fmt: skip
REASONS = {kind: why for why, kinds in _TYPES.items() for kind in kinds}


def reason(kind: str) -> str:
    """Why there is no change for this type of graph break, as the end of a sentence."""
    return REASONS.get(kind, "none of those that dynascope knows fits")
