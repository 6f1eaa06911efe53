"""Columns of words: types, schemas, symbols; Arrow, pandas and Python data into words and back."""
