"""Facts about source files: who a file belongs to (`origin`), the text and syntax of its lines (`lines`), its code objects
(`code`), and the functions in this process that are defined in it (`functions`).
"""
