"""Lets in those who may look at the page: decides before anything else sees a request.

A page of another site cannot look: it has neither the cookie, which is `SameSite=Strict`, nor our origin, and
a name that it lets point to this machine is not among ours. A program of another user cannot look, since it
does not know the token. A script cannot read the cookie, and none runs but ours.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["OWN_PAGE", "PageGuard"]

OWN_PAGE: Final = "/page/"
"""Where a page of the user's own is."""

_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_NO_COOKIE: Final = "Open the address that the console has printed: it has a token that lets you in.\n"
_WRONG_TOKEN: Final = (
    "This token is not that of the console that runs here. Open the address that it has printed; each start "
    "has another one.\n"
)


class PageGuard:
    """Lets requests through to `app` that may see the cluster.

    names  of this host, beside its addresses: a request for another one is refused
    port   makes the cookie's name: consoles on one host would share a cookie otherwise
    """

    def __init__(self, app: ASGIApp, token: str, names: Iterable[str], port: int) -> None:
        self._app, self._token = app, token
        self._names = {name.lower().rstrip(".") for name in names}
        self._cookie = f"naiad_console_{port}"
        self._secret = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may not pass; hand on any other one."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, _with_headers(send))
        else:
            await refusal(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return PlainTextResponse(
                "This console is not known by that name: name it by --name, or use the address that it has "
                "printed.\n",
                400,
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
            return PlainTextResponse("Pages of other sites may not ask.\n", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("The page only reads: GET, or POST for a query.\n", 405)
        return self._stranger(scope, headers)

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer for a client that has not shown the token, or shows it."""
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if tokens:
            if not _same(tokens[0], self._token):
                return PlainTextResponse(_WRONG_TOKEN, 403)
            if scope["path"] not in ("/", OWN_PAGE):
                return None
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(self._cookie, self._secret, path="/", httponly=True, samesite="strict")
            return answer
        if bearer and _same(bearer, self._token):
            return None
        shown = [cookie_parser(each).get(self._cookie, "") for each in headers.getlist("cookie")]
        if any(_same(each, self._secret) for each in shown):
            return None
        return PlainTextResponse(_NO_COOKIE, 403)

    def _is_ours(self, host: str) -> bool:
        """Return True for a name of ours and for a bare address, which no foreign name server can have made
        ours.
        """
        name = host.lower()
        if name.startswith("["):
            name, _, rest = name[1:].partition("]")
            if rest and not rest.startswith(":"):
                return False
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if name.rstrip(".") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _same(shown: str, secret: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), secret.encode())


def _with_headers(send: Send) -> Send:
    async def sends(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sends
