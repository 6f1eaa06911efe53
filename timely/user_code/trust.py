"""May this process run code that a client sends?

Builders are modules that whoever started the worker has put there. Code inside a request is another matter:
it runs with the worker's rights, and a client port may be open to a network. So it is run only for the client
that has started the worker, which proves it by a secret that went to the worker through its standard input.
"""

from __future__ import annotations

import hmac

__all__ = ["is_trusted", "trust"]

_secret = ""


def trust(secret: str) -> None:
    """From now on run code of whoever knows `secret`; of nobody if it is empty."""
    global _secret  # noqa: PLW0603  # one per process, as the process is what is to be protected
    _secret = secret


def is_trusted(token: object) -> bool:
    """Whether `token` is the secret of this process."""
    return bool(_secret) and isinstance(token, str) and hmac.compare_digest(token.encode(), _secret.encode())
