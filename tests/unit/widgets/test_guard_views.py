"""Recompiles, guards and symbols in the views."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from samples import CELL, recompiled

from dynascope.compiler.report import Constraint, Guard, GuardSite, Recompile, Report, StackEntry, Symbol
from dynascope.widgets.features import overview
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_details, to_text

AT = StackEntry(file=CELL, line=2, function="f", column=11, end_column=16, cell=3)


def known() -> Report:
    """A recompile whose line, call and cost are known, with the guards and symbols of its frames."""
    report = recompiled()
    again = report.recompiles[0]
    again.failed_guards[0] = replace(again.failed_guards[0], actual="3", at=AT, origin="code", compile_id="0/0")
    again.call, again.entries, again.limit = 2, 2, 8
    again.stack = [StackEntry(file=CELL, line=5, function="<module>", cell=3)]
    value = Guard(kind="EQUALS_MATCH", text="n == 2", source="n", origin="code")
    own = Guard(kind="TYPE_MATCH", text="type(self) is M", source="self", origin="code", count=3)
    report.frames[0].guard_sites = [GuardSite(guards=[own]), GuardSite(at=AT, guards=[value])]
    pin = Constraint(expression="Eq(s0, 3)", text="n == 3", value="3", at=AT, origin="operation", asked_by="infer_size")
    report.frames[1].symbols = [
        Symbol(name="s0", source="n", hint="3", low="2", high="int_oo", dynamic="automatic", at=AT, constraints=[pin])
    ]
    return report


def limited() -> Report:
    """The same, and a third call that the compiler refused."""
    report = known()
    refused = replace(report.frames[1], id="f2", compile_id="0/2", graph=None, status="skipped", recompile_of=None)
    report.frames.append(refused)
    report.recompiles.append(
        Recompile(
            frame="f2", of="f1", failed_guards=report.recompiles[0].failed_guards, call=3, entries=2, limit=2,
            refused_by="recompile_limit", stack=report.recompiles[0].stack,
        )
    )  # fmt: skip
    return report


def test_the_text_names_the_call_the_cost_and_the_line() -> None:
    report, cause = known(), "    n was 2 when it was compiled, and is 3 now → In[3]:2 return x * n"
    assert f"↻ recompile 0/1 of f (call 2, In[3]:5; 0.21 s; 2 of 8 versions)\n{cause}\n    (of each" in to_text(report)
    report.recompiles[0].failed_guards[0].hint = "set it"
    assert to_text(replace(report, recompiles=report.recompiles * 2)).count(f"{cause}\n    the compiler's hint: set it\n") == 1
    report.frames[1].parent = "f0"  # the number is that of the call of another function, which leads to this one
    assert "↻ recompile 0/1 of f (In[3]:5; 0.21 s; 2 of 8 versions)" in to_text(report)


def test_the_recompile_limit_is_the_first_thing_that_is_said() -> None:
    lines = [line for line in to_text(limited(), width=140).splitlines() if line]
    assert "recompile limit reached" in lines[0]
    assert lines[1].startswith("✗ f has reached the recompile limit (recompile_limit = 2)")
    assert "first at call 3, In[3]:5" in " ".join(line.strip() for line in lines[1:4])
    report = limited()
    rows = view_model(report)["recompiles"]
    assert [(row["id"], row["refused"]) for row in rows] == [("f2", True), ("f1", False)]
    assert "(recompile_limit = 2): no new version (first at call 3" in rows[0]["title"]
    report.frames[1].parent = "f0"  # the caller of the refused frame is unknown: it may be the same
    assert "(recompile_limit = 2): no new version (first at In[3]:5)" in view_model(report)["recompiles"][0]["title"]
    report.frames[1].parent = None
    report.recompiles[-1].failed_guards = [replace(report.recompiles[0].failed_guards[0], source=name) for name in "abcde"]
    assert "    … and 2 more\n" in to_text(report)
    assert "    … and 2 more\n" not in to_details(report)
    assert "e was 2 when" in to_details(report)


def test_versions_of_a_function_at_the_limit_are_not_said_to_run_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    report = limited()
    report.frames[-1].reason = "Dynamo recompile limit exceeded: Dynamo attempted"
    report.graphs += [replace(report.graphs[0], id=f"g{n}") for n in range(2, 9)]
    monkeypatch.setattr(overview, "is_large", lambda _: True)
    model = view_model(report)
    assert model["overview"]["calls"][0]["events"][0] == ["skipped", "at the recompile limit"]
    said = {line.get("reason") for line in model["sources"][0]["lines"]}
    assert said == {None, "captured in graph 0, 1, 2, 3, 4, 5 and 3 more"}
    for name, eager in ((report.frames[0].code_name, ["f"]), ("torch_dynamo_resume_in_f_at_2", [])):
        report.frames[-1].code_name = name  # of the code at the limit; a resume function has the name of its function
        assert view_model(report)["overview"]["causes"][0]["eager"] == eager


def test_the_list_of_recompiles() -> None:
    (row,) = view_model(known())["recompiles"]
    assert (row["id"], row["name"], row["place"]) == ("f1", "f 0/1", "call 2, In[3]:5")
    assert row["cause"] == "n was 2 when it was compiled, and is 3 now → In[3]:2 return x * n"
    assert row["facts"] == "0.21 s · 2 of 8 versions"


def test_the_tabs_of_a_frame() -> None:
    details = view_model(known())["details"]
    first = {part["key"]: part["body"] for part in details["f0"]["parts"]}
    assert first["guards"] == [["n == 2", "In[3]:2 return x * n", "", ""], ["type(self) is M (3 of this kind)", "", "", ""]]
    again = {part["key"]: part["body"] for part in details["f1"]["parts"]}
    why = "automatic dynamic shapes, if its value changed between calls; first used at In[3]:2 return x * n"
    assert again["symbols"][0] == ["s0 = n, 3 in this call", "only 3", why, ""]
    assert again["symbols"][1] == ["    n == 3 (Eq(s0, 3))", "one value", "In[3]:2 return x * n", ""]
    symbol, free = Symbol(name="s0", constraints=[Constraint(expression="n >= 0", text="n >= 0")]), Symbol(name="s1")
    report = known()
    report.frames[1].symbols = [symbol, free]
    (part,) = (part for part in view_model(report)["details"]["f1"]["parts"] if part["key"] == "symbols")
    assert [row[1] for row in part["body"]] == ["", "", "any"]  # a condition limits it, too
