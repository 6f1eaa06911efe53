"""Values that stand in rows as words: their bytes, a worker's table, what workers tell one another."""
