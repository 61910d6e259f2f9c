"""Every word that a view shows: names, places, counts, advice."""
