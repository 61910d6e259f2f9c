"""The model as a page, a picture, terminal text (`overview_text` of a large report), the static output of a notebook,
and the compile time for Perfetto.
"""
