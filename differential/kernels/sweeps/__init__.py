"""Groups gone through in order of a time: what they give, and what part of one has to be gone through."""
