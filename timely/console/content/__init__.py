"""What the page shows, made of what workers tell."""
