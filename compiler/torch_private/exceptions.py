"""The exceptions that Dynamo raises, and running a frame eagerly if it does."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from dynascope.compiler.torch_private.availability import note_missing
from dynascope.compiler.torch_private.config import dynamo_config


def refusals() -> tuple[type[BaseException], ...]:
    """The exceptions that Dynamo raises if it, or a backend, refuses the user's code."""
    import torch._dynamo.exc as exc

    names = ("Unsupported", "UserError", "InternalTorchDynamoError", "BackendCompilerFailed")
    absent = [name for name in names if not hasattr(exc, name)]
    if absent:
        note_missing("the compiler's exceptions", f"no {', '.join(absent)}")
    return tuple(getattr(exc, name) for name in names if name not in absent)


#: beginnings of what torch logs about a failed attempt: the eager run after it raises the same error, and the report has it
_FAILED_ATTEMPT = ("WON'T CONVERT", "failed while attempting to run meta", "Graph break from `Tensor.item()`")
_QUIET_LOGGERS = ("torch._dynamo.convert_frame", "torch._subclasses.fake_tensor", "torch._dynamo.variables.tensor")


@contextlib.contextmanager
def suppressed_errors() -> Iterator[None]:
    """Run a frame eagerly if compiling it fails; exceptions, side effects and names are those of the eager run.

    Dynamo logs a warning for each; the report has it instead.
    """

    def quiet(record: logging.LogRecord) -> bool:
        return not str(record.msg).lstrip().startswith(_FAILED_ATTEMPT)

    for name in _QUIET_LOGGERS:
        logging.getLogger(name).addFilter(quiet)
    try:
        with dynamo_config(suppress_errors=True):
            yield
    finally:
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).removeFilter(quiet)
