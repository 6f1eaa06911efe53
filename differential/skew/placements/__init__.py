"""Schemes that place rows on units. Read `placement.py`: the law, and what all schemes share."""
