"""Shows a Report or a RanksReport; needs no torch, and of the compiler only the reports.

`view` has the live views, `frontend` their JavaScript, built into `static`; `render` makes pages, pictures and
text.  `features` has a module for each thing that is shown: its words, its data and its text.  Views, pages and pictures draw a
`model`, which is made of the features' data and of drawings; `drawing` chooses and `layout` places
their shapes.  `detail` has what all details are made of, `words` makes text safe to show and handles errors of drawing, and
`terminal` formats lines.
"""
