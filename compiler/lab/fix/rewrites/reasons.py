"""Why no change is offered for a graph break, by its type: what stands in the way, and what to change by hand."""

from __future__ import annotations

_VALUES = "what the operator returns depends on values, which the compiler does not have"
_MEMORY = "the memory of a tensor changes: make a new tensor instead"
_PYTHON = "a Python value is made from a tensor's values, which the compiler does not have"
_UNTRACED = "the compiler does not trace what is called there: call it outside of the compiled function"
_OBJECT = "the compiler does not trace this object: make it outside of the compiled function"
_MODE = "the mode is not known to the compiler: pass it as an argument"
_GRADIENTS = "gradients are computed or asked for inside: do it outside of the compiled function"
_OUTSIDE = "the values leave torch: put the code that needs them into a custom operator"
_RAISES = "the code raises an exception that no traced code catches: raise it outside of the compiled function"
_WITH = "the compiler cannot enter this context manager: put the `with` around the call of the compiled function"
_IMPORT = "the import cannot be traced: import outside of the compiled function"
_NO_TENSOR = "the function returns something that is not a tensor: call it outside of the compiled function"
_ASKED = "the program asks for it"

REASONS = {
    "Data-dependent branching": "no known rewrite fits this condition and its sides",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": _PYTHON,
    "Tensor.tolist() with non-integer tensor": _PYTHON,
    "Failed to trace builtin operator": "a function of Python needs values that the compiler does not have",
    "Observed exception": _RAISES,
    "repr() on tensor": _PYTHON,
    "sort with non-constant keys": _PYTHON,
    "list_richcompare_nonconst": _PYTHON,
    "Data pointer comparison": "addresses of memory are not known to the compiler",
    "Reconstruction of FakeIdVariable": "addresses of objects are not known to the compiler",
    "Dynamic shape operator": _VALUES,
    "Data dependent operator": _VALUES,
    "Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape": "pass num_classes",
    "Attempted to call function marked as skipped": _UNTRACED,
    "Unsupported method call": _OBJECT,
    "Unsupported function call": _OBJECT,
    "Unsupported context manager": _WITH,
    "Unhandled args for method": _OBJECT,
    "missing tp_iter": _OBJECT,
    "Missing tp_iternext": _OBJECT,
    "setattr() on unsupported type": _OBJECT,
    "Import failure": _IMPORT,
    "torch.* op returned non-Tensor": _NO_TENSOR,
    "An opaque object was created in the middle of the program.": _OBJECT,
    "__class__ assignment on user-defined object": _OBJECT,
    "Invalid call to __build_class__": "a class is made in each call: define it outside of the function",
    "Attempted to copy.deepcopy a tensor": "use clone() instead: copy.deepcopy is not captured",
    "Attempted to use `torch.nn.Parameter()` constructor with Dynamo": "make the parameter outside of the compiled function",
    "Attempted to wrap sparse Tensor with VariableTracker": "sparse tensors cannot be in a graph",
    "Operator does not support running with fake tensors": "the compiler cannot tell what the operator returns",
    "Argument of `as_subclass` must be a non-dispatcher-style tensor subclass": _OBJECT,
    "requires_grad_() intermediate leaked as output": _GRADIENTS,
    "Unsupported Tensor.backward() call": _GRADIENTS,
    "Unsupported Tensor.requires_grad_() call": _GRADIENTS,
    "setattr() on Tensor.requires_grad": _GRADIENTS,
    "Unsupported autograd.Function context `mark_dirty`": "the function changes its input: let it return a new tensor",
    "Unsupported Tensor.resize_() call": _MEMORY,
    "Failed to mutate tensor data attribute": _MEMORY,
    "Attempted to call op with non-contiguous `out=` tensor": _MEMORY,
    "Shape mismatch with out= tensor variant": _MEMORY,
    "Tensor.random_ op": "use torch.randint instead: random_() is not captured",
    "Encountered tensor.is_inference() during tracing": _MODE,
    "Encountered torch.is_inference_mode_enabled during tracing": _MODE,
    "attempted to trace numpy function unsupported by PyTorch": _OUTSIDE,
    "Unsupported ndarray method call": _OUTSIDE,
    "ndarray.astype(object)": _OUTSIDE,
    "logging.Logger method not supported for non-export cases": "the record is written between two graphs: log after the call",
    "Call to `torch._dynamo.graph_break()`": _ASKED,
    "Call to `torch._dynamo.skip_frame()`": _ASKED,
    "torch._dynamo.step_unsupported() with empty checkpoint": _ASKED,
    "Skip calling `torch.compiler.disable()`d function": _ASKED,
}
UNKNOWN = "dynascope has none for this type of graph break"


def reason(kind: str) -> str:
    """Why there is no change for this type of graph break, as the end of a sentence."""
    return REASONS.get(kind, UNKNOWN)
