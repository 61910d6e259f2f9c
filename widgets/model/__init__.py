"""The one model of plain data from which picture, widget, page and text are made; `build` puts its parts together."""
