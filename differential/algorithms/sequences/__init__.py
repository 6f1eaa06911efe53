"""Computations along an order."""
