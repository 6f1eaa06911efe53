"""What statements of SQL return: rows, and changes that go on."""
