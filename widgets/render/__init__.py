"""The model as a page, a picture, terminal text, and the static output of a saved notebook."""
