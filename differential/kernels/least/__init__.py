"""The least or greatest value of each key, without reading all of its history."""
