"""Streams in files: a vertex writes what comes in, and how far it has come; a source gives it again."""
