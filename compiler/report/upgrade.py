"""Upgrades the data of reports from schema 1 to schema 2.

Schema 1 had sentences where schema 2 has numbers and enums, and one string for what set `error_on_graph_break`.  Facts that
only a sentence has are read from the sentence; the sentences of recompiles are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Data = dict[str, Any]

_PLACE = re.compile(r"^(?P<label>.+):(?P<line>\d+)$", re.S)
_OPTION = re.compile(r"^--region (?P<target>.+)=(?:error|allow)$", re.S)
_CALLS = re.compile(r"Median of (\d+) calls")


def from_schema_1(data: Data) -> Data:
    """Convert a report of schema 1 to schema 2, changing `data`; parts with the wrong form are left for the validation."""
    data["schema"] = 2
    sources = list(_dicts(data.get("sources")))
    names = [str(s.get("label")) for s in sources]
    labels = {name: s for name, s in zip(names, sources, strict=True) if names.count(name) == 1 and "file" in s}
    for broken in _dicts(data.get("breaks")):
        broken["region"] = _origin(broken.get("region"), labels)
    for source in sources:
        for lines in _dicts(source.get("regions")):
            lines["set_by"] = _origin(lines.get("set_by"), labels)
    for recompile in _dicts(data.get("recompiles")):
        recompile["failed_guards"] = _guards(recompile.pop("words", None))
    for run in _dicts(data.get("inputs")):
        _input(run)
    if isinstance(data.get("profile"), dict):
        _profile(data["profile"])
    return data


def _dicts(value: Any) -> Iterator[Data]:
    yield from (v for v in value if isinstance(v, dict)) if isinstance(value, list) else ()


def _origin(region: Any, labels: dict[str, Data]) -> Data:
    """The FlagOrigin for a region of schema 1.

    A region is `default`, `this run`, `In[3]:4`, `model.py`, `--region g=allow`, or the name of a decorated function.
    """
    if not isinstance(region, str):
        return {}
    if region in ("default", "this run"):
        return {"kind": "run" if region == "this run" else "default"}
    if option := _OPTION.match(region):
        return {"kind": "option", "name": option["target"]}
    at = _PLACE.match(region)
    if at or region in labels:
        source = labels.get(at["label"] if at else region, {"file": at["label"] if at else region})
        return {"kind": "with", "file": source["file"], "line": int(at["line"]) if at else None, "cell": source.get("cell")}
    return {"kind": "decorator", "name": region}


def _guards(words: Any) -> list[Data]:
    return [{"kind": "text", "text": w} for w in words] if isinstance(words, list) else []


def _input(run: Data) -> None:
    compiled = run.get("outcome") in ("recompiled", "compiled")
    if run.get("outcome") == "recompiled":
        run["failed_guards"] = _guards(run.pop("reasons", None))
    if run.get("payback_calls") is not None:
        run["payback"] = "calls"
    elif compiled and run.get("eager_seconds") is not None:
        run["payback"] = "no gain"


def _profile(profile: Data) -> None:
    for cost in _dicts(profile.get("breaks")):
        how = str(cost.pop("how", ""))
        calls = _CALLS.search(how)
        idle = how.startswith("how long the device")
        cost["method"] = "eager frame" if cost.get("seconds") is None else "device idle" if idle else "gap"
        cost["calls"] = int(calls[1]) if calls else 0
        cost["parts"] = cost.get("parts") or None
    match verdict := profile.get("verdict", {}):
        case {"eager_seconds": int() | float() as eager, "compiled_seconds": int() | float() as compiled}:
            # the same threshold as `_CLEAR` in `profile.measure`
            if eager - compiled > 0.03 * eager:
                verdict["payback"] = "compile time unknown" if verdict.get("payback_calls") is None else "calls"
            else:
                verdict["payback"] = "slower" if compiled - eager > 0.03 * eager else "no gain"
