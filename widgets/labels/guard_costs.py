"""What guards cost, in words: for each frame, for parts of its guards, and what switches that leave out guards would gain.

Promises: a switch comes with what it takes for granted; one that can give wrong results without an error says so first.
"""

from __future__ import annotations

from dynascope.compiler.report import FrameGuards, GuardCosts, GuardSwitch, GuardTime, Report, plural, time_text
from dynascope.widgets.labels.words import Places

_FILTER = 'options={{"guard_filter_fn": torch.compiler.{}}}'
#: name -> (how it is set, what it takes for granted), from torch's documentation or, for `install_free_tensors`, from a test
_SWITCHES = {
    "skip_guard_on_inbuilt_nn_modules_unsafe": (_FILTER, "no attribute of torch's own modules changes after the compile"),
    "skip_guard_on_all_nn_modules_unsafe": (_FILTER, "no attribute of a module changes after the compile"),
    "skip_guard_on_globals_unsafe": (_FILTER, "no global that the code reads changes after the compile"),
    "use_recursive_dict_tags_for_guards": (
        "torch._dynamo.config.{} = True",
        "`__code__`, `__closure__`, `__defaults__`, `__kwdefaults__`, `__annotations__` and `__mro__` are never rebound",
    ),
    "install_free_tensors": (
        "torch._dynamo.config.{} = True", "no tensor of a global, a closure or a module is replaced by another",
    ),
    "skip_guard_eval_unsafe": (
        "torch.compiler.set_stance({}=True)", "all kinds of inputs have been compiled: none needs a recompile any more",
    ),
}  # fmt: skip


def is_unsafe(switch: GuardSwitch) -> bool:
    """Whether a switch can lead to wrong results without an error: its name says so, or a test of this project shows it."""
    return switch.name.endswith("_unsafe") or switch.name == "install_free_tensors"


def guards_summary(report: Report) -> str:
    """`guards take 48 µs a call, the code around graphs 12 µs (together 23%)`; empty if that is unknown."""
    costs = report.profile.guards if report.profile is not None else None
    if costs is None:
        return ""
    return (
        f"guards take {time_text(costs.lookups)} a call, the code around graphs {time_text(costs.prologue)} "
        f"(together {100 * costs.share:.0f}%)"
    )


def frame_words(one: FrameGuards, report: Report, places: Places) -> str:
    """What a frame's guards cost: `f (0/0): guards 40 µs, the code around the graph 8 µs, 18% of the call`."""
    frame = next((f for f in report.frames if f.id == one.frame), None)
    name = "compiled code the report lacks" if frame is None else f"{places.name(frame)} ({frame.compile_id})"
    times = f", evaluated {one.times:.3g} times a call" if one.times > 1.01 else ""
    return (
        f"{name}: guards {time_text(one.lookups)}{times}, the code around the graph {time_text(one.prologue)}, "
        f"{100 * one.share:.0f}% of the call"
    )


def guard_time_words(one: GuardTime) -> str:
    """What some guards take of an evaluation: `36% of the frame's guards (24 guards)`."""
    return f"{100 * one.share:.0f}% of the frame's guards ({plural(one.guards, 'guard')})"


def gains(switch: GuardSwitch) -> float:
    """Seconds that a switch saves in a call; 0 if they are unknown, or at most a tenth of what guards and prologue take."""
    less = (switch.before or 0.0) - (switch.seconds if switch.seconds is not None else float("inf"))
    return less if less > 0.1 * (switch.before or 0.0) else 0.0


def best_switches(costs: GuardCosts) -> list[GuardSwitch]:
    """The switches, those that save most first; of two that save the same, the safe one first."""
    return sorted(costs.switches, key=lambda s: (-gains(s), is_unsafe(s)))


def switch_words(switch: GuardSwitch) -> tuple[str, str, str]:
    """How a switch is set, what it saves, and what it takes for granted."""
    how, assumption = _SWITCHES[switch.name]
    if switch.before is None or switch.seconds is None:
        gain = f"could not be tried: {switch.failed or 'unknown'}"
    else:
        less = gains(switch)
        gain = f"{time_text(less)} a call less, of {time_text(switch.before)}" if less else "gains next to nothing"
    unsafe = "Unsafe: silently wrong results unless this holds: " if is_unsafe(switch) else "Takes for granted: "
    return how.format(switch.name), gain, unsafe + assumption
