"""Graph algorithms, written with the public operators only; each is an example of them."""

from differential.algorithms.components import connected_components

__all__ = ["connected_components"]
