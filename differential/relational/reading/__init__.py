"""SQL texts become relations. sqlglot reads the grammar; names, types and rules are ours."""
