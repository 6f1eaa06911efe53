"""Numbers that are exact: whole ones and decimals, and what becomes of them where they leave 64 bits."""
