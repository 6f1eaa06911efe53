"""Values that take two words: decimals of more than 18 digits."""
