"""May this process run code that a client sends?

Builders are modules that the worker's owner has installed on its host. Code inside a request is another
matter: it runs with the worker's rights, and a client port may be open to a network. So a worker runs such
code only for the client that has started it. The client proves that by a secret that it has sent through the
worker's standard input.
"""

from __future__ import annotations

import hmac

__all__ = ["is_trusted", "own_token", "trust"]

_secret = ""


def trust(secret: str) -> None:
    """From now on run code of clients that know `secret`; of none if it is empty."""
    global _secret  # noqa: PLW0603  # one per process, since the process is what it protects
    _secret = secret


def is_trusted(token: object) -> bool:
    """Return True if `token` is the secret of this process."""
    return bool(_secret) and isinstance(token, str) and hmac.compare_digest(token.encode(), _secret.encode())


def own_token() -> str:
    """Return the secret of this process, for code that it has trusted before and finds in its own store."""
    return _secret
