"""Vertices whose inputs lead to their outputs by paths of their own."""
