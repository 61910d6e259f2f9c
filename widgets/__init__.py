"""Shows a Report or a RanksReport; needs no torch, and of the compiler only the reports.

`view` and `ranks_view` are the live views, `frontend` their JavaScript, built into `static`; `render` makes pages, pictures and
text.  All draw a `model`, plain data of the types in `wire`; `drawing` chooses and `layout` places the shapes of its pictures,
and `labels` puts facts into words.  `guarded` handles errors of drawing.
"""
