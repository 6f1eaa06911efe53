"""Exact numbers, whole ones and decimals: their arithmetic, and rows whose results leave 64 bits."""
