"""How the page is served: which requests pass, what they get, and at what pace."""
