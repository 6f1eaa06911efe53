"""`python -m timely.sql`: statements of SQL against a running cluster, from a prompt, a file or a pipe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TextIO

from ..client.cluster import Cluster, connect
from ..client.statements.drawing import drawn
from ..client.statements.results import SqlChanges, SqlResult
from ..client.statements.running import results_of
from ..errors import TimelyError
from .prompt import read_statements

__all__ = ["run_command"]

_EXAMPLES = """examples:
  python -m timely.sql localhost:7401                        a prompt
  python -m timely.sql localhost:7401 -c 'show tables'       one text, with as many statements as it has
  python -m timely.sql localhost:7401 tables.sql views.sql   files, one after the other
  python -m timely.sql localhost:7401 < tables.sql           the same from a pipe
  python -m timely.sql --embedded                            without a cluster: in this process, to try it

at the prompt a statement ends with ; and \\q, or Ctrl-D, ends the program; \\d lists tables and views,
\\d NAME the columns of one. Ctrl-C ends SUBSCRIBE, or drops what is typed. A text, file or pipe is a script:
nothing of it is done if a statement is wrong."""


def run_command(arguments: Sequence[str], source: TextIO, out: TextIO, errors: TextIO) -> int:
    """Run a command line, and return the exit status: 0, or 1 if a statement failed. Read statements from
    `source` unless the arguments have a text or files.
    """
    parsed = _parser().parse_args(arguments)
    if (parsed.address is None) != parsed.embedded:
        _parser().error("name a worker, HOST:PORT, or write --embedded")
    try:
        if parsed.embedded:
            cluster = connect(workers=1, embedded=True)
        else:
            cluster = connect(parsed.address, keys=parsed.keys)
        with cluster:
            return _run(cluster, parsed, source, out, errors)
    except TimelyError as error:
        print(f"timely.sql: {error}", file=errors)
        return 1


def _run(cluster: Cluster, parsed: argparse.Namespace, source: TextIO, out: TextIO, errors: TextIO) -> int:
    console = _Console(cluster, parsed.dialect, out, errors)
    if parsed.text is None and not parsed.files and source.isatty():
        console.prompt()
        return 0
    scripts = [(name, Path(name).read_text()) for name in parsed.files]
    if parsed.text is not None:
        scripts.append(("<text>", parsed.text))
    if not scripts:
        scripts.append(("<stdin>", source.read()))
    return 0 if all(console.run(text, name) for name, text in scripts) else 1


class _Console:
    """Prints results, and errors in one line."""

    def __init__(self, cluster: Cluster, dialect: str, out: TextIO, errors: TextIO) -> None:
        self._cluster, self._dialect = cluster, dialect
        self._out, self._errors = out, errors

    def run(self, text: str, name: str) -> bool:
        """Carry a script out, and print what each statement returns; return False if one failed."""
        try:
            for result in results_of(self._cluster, text, self._dialect, {}, None, name):
                self._show(result)
        except TimelyError as error:
            print(f"{type(error).__name__}: {error}", file=self._errors, flush=True)
            return False
        return True

    def prompt(self) -> None:
        """Read statements until the end of the input."""
        with suppress(ImportError):
            import readline  # noqa: F401  # gives input() a history
        print("SQL against a cluster that keeps answers current. \\? helps, \\q ends.", file=self._out)
        for text in read_statements(input, self._out):
            with suppress(KeyboardInterrupt):
                self.run(text, "<prompt>")

    def _show(self, result: SqlResult | SqlChanges) -> None:
        if isinstance(result, SqlResult):
            shown = drawn(result.to_arrow()) if result.has_rows else result.status
            print(shown, file=self._out, flush=True)
            return
        with closing(result), suppress(KeyboardInterrupt):
            for epoch, changes in result:
                if isinstance(changes, TimelyError):
                    shown = f"epoch {epoch}: {type(changes).__name__}: {changes}"
                else:
                    shown = drawn(changes)
                print(shown, file=self._out, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.sql",
        description="SQL against a running cluster: tables, views that are kept current, queries.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", nargs="?", metavar="HOST:PORT", help="where one worker is reached")
    parser.add_argument("files", nargs="*", metavar="FILE", help="scripts to run instead of the prompt")
    parser.add_argument("-c", dest="text", metavar="TEXT", help="statements to run instead of the prompt")
    parser.add_argument(
        "--dialect", default="spark", choices=("spark", "postgres", "duckdb"), help="how texts are read"
    )
    parser.add_argument("--keys", metavar="FOLDER", help="the keys of this client, if workers have keys")
    parser.add_argument("--embedded", action="store_true", help="workers in this process, which end with it")
    return parser
