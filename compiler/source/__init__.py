"""Facts about source files: who a file belongs to (`origin`), the text and syntax of its lines (`lines`), the scopes of its
syntax tree (`syntax`), its code objects (`code`), the functions in this process that are defined in it, whose code can be
swapped (`code_swap`), and whether it was edited since it was loaded (`edited`).
"""
