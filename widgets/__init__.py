"""Shows a Report or a RanksReport; needs no torch, and of the compiler only the reports.

`view` and `ranks_view` are the live views, `frontend` their JavaScript, built into `static`; `render` makes pages, pictures and
text.  Views, pages and pictures draw a `model`, plain data of the types in `wire` (for ranks, in `model.ranks`); text is made
from the report and from parts of the model.  `drawing` chooses and `layout` places the shapes of pictures, and `labels` puts
facts into words.  `guarded` handles errors of drawing.
"""
