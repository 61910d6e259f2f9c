"""*Events in, Report out*: a pure function, without torch, clock or files.

`drafts` groups the events by frame, `assemble` makes frames, graphs and breaks of them, `links` says who called and who
continues whom; the others read one kind of fact each: `breaktext`, `guardtext` and `graphtext` what torch writes, `stops`,
`flags`, `stages` and `counts` what follows from it.
"""
