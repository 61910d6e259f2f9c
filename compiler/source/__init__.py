"""Source files: whose a file is (`origin`), what its lines say (`lines`), its code objects (`code`), its
functions that live (`functions`).
"""
