"""`python -m timely.console` and `cluster.console()`: a page that shows how a cluster works. docs/console.md
describes its use.

It is a client: workers serve no page, and answer only if somebody looks at one. Needs starlette and uvicorn.
"""
