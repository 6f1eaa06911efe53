"""Functions of the catalogue by subject: texts, codes, angles and bits, days, nested values."""
