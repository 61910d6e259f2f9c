"""Source files: whose a file is (`origin`), what its lines say (`lines`), and its code objects (`code`)."""
