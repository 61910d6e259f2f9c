"""The model as a page, a picture, terminal text (`overview_text` of a large report), and the static output of a notebook."""
