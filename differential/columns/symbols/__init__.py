"""Values that stand in rows as words: their bytes, a worker's table, the entries that workers exchange."""
