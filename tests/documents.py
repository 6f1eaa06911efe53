"""Running the code and commands of a Markdown document, and comparing what they print.

What a fenced block does is decided by the first word after its fence:

    python              run; all blocks of a document are one program, in order, in a fresh process
    python file=NAME    written to NAME before anything runs, for programs that import it
    sh                  run as one script, which stops at its first failing command
    console             each line after `$ ` is a command; the lines under it are what it must print
    output              directly after a python or sh block: what that block must print
    text, toml, …       for the reader only

A python, sh or console block may be left out only with a reason: `python (not run: needs a cluster)`.
In expected output, `...` alone on a line stands for any lines, inside a line for any characters; space at the
end of a line does not count. Only standard output is compared, and a command must succeed; to show an error,
write `command 2>&1 || echo "exit $?"`. A command under which nothing is shown may print anything.

Commands run in a scratch copy of the repository with the present interpreter's programs on the path, python
programs before commands. Programs, and commands that only start one, may be forked from a process that has
imported this project (`forked_workers.py`), unless they start Spark. The two commands that set a machine up
(`SETUP_COMMANDS`) are not run from inside the tests that they start: `.ci/run` runs them on a fresh clone,
which `test_docs_run.py` makes sure of.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from house import PACKAGES, ROOT

__all__ = [
    "SETUP_COMMANDS",
    "Block",
    "DocumentError",
    "blocks",
    "make_scratch",
    "markdown_below",
    "problems_in",
    "run_document",
    "starts_spark",
]

SETUP_COMMANDS = ("./scripts/demo", "./scripts/test", "./scripts/check", "./scripts/setup")
RUNNABLE = ("python", "sh", "console")
READ_ONLY = ("text", "toml", "json", "js", "markdown", "rust", "sql", "diff", "mermaid")
KINDS = (*RUNNABLE, "output", *READ_ONLY)
PROGRAM_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 300
_LINKED = (*PACKAGES, "tests")

Forks = Callable[[Sequence[str], Mapping[str, str], Path], subprocess.Popen[str]]
"""Starts a program of Python: its file and arguments, its environment, and where it runs."""


class DocumentError(AssertionError):
    """A block of a document failed or printed something else; the message names file and line."""


@dataclass(frozen=True)
class Block:
    """One fenced block: the info string after its fence, its lines, and the line number of the first."""

    info: str
    lines: tuple[str, ...]
    line: int
    directly_after_previous: bool

    @property
    def kind(self) -> str:
        """The first word of the info string."""
        return self.info.partition(" ")[0]

    @property
    def is_run(self) -> bool:
        """Whether it holds something to run and is not left out."""
        return self.kind in RUNNABLE and "(not run" not in self.info

    @property
    def file(self) -> str | None:
        """The name to write it to, of `python file=NAME`."""
        found = re.search(r"\bfile=(\S+)", self.info)
        return found.group(1) if found else None

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(line + "\n" for line in self.lines)


def blocks(document: str) -> list[Block]:
    """The fenced blocks of a Markdown text, in order. Blocks inside lists keep their inner indentation."""
    found: list[Block] = []
    fence, info, start, indent, body = "", "", 0, 0, list[str]()
    only_space_since = False
    for number, line in enumerate(document.splitlines(), 1):
        opening = re.match(r"( *)(`{3,}|~{3,})(.*)$", line)
        if not fence and opening:
            indent, fence, info = len(opening[1]), opening[2], opening[3].strip()
            start, body = number + 1, []
        elif fence and line.strip() == fence:
            found.append(Block(info, tuple(body), start, only_space_since))
            fence, only_space_since = "", True
        elif fence:
            body.append(line[indent:] if not line[:indent].strip() else line)
        elif line.strip():
            only_space_since = False
    if fence:
        raise DocumentError(f"line {start - 1}: this block is never closed")
    return found


def problems_in(document: str) -> list[str]:
    """What is wrong with the blocks as they are written, before any is run."""
    problems = []
    previous: Block | None = None
    for block in blocks(document):
        problems += [f"line {block.line - 1}: {problem}" for problem in _problems_of(block, previous)]
        previous = block
    return problems


def _problems_of(block: Block, previous: Block | None) -> Iterator[str]:
    if not block.info:
        yield f"say what the block is: one of {', '.join(KINDS)}"
    elif block.kind not in KINDS:
        yield f"'{block.kind}' is none of {', '.join(KINDS)}"
    if "(not run" in block.info and not re.search(r"\(not run: \S.*\)$", block.info):
        yield "a block that is not run says why: (not run: reason)"
    if block.kind == "console" and block.is_run and not (block.lines and block.lines[0].startswith("$ ")):
        yield "a console block begins with a command: '$ …'"
    if block.kind == "output":
        printer = previous if block.directly_after_previous else None
        if printer is None or printer.kind not in ("python", "sh") or not printer.is_run:
            yield "an output block stands directly after the python or sh block that prints it"


def make_scratch(folder: Path) -> None:
    """Lay out in `folder` what a clone has: copies that commands may write to, links to the rest.

    Links to the packages, because kernels are cached beside their source: a copy would compile all of them
    again. Of the tests, which are half of all files, documents only say where they are.
    """
    left_out = {*_LINKED, ".git", ".venv", "dist", "build"}
    caches = shutil.ignore_patterns("__pycache__", "target", ".venv", ".*_cache", ".hypothesis")
    for entry in ROOT.iterdir():
        if entry.name in _LINKED:
            (folder / entry.name).symlink_to(entry, target_is_directory=True)
        elif entry.is_dir() and entry.name not in left_out and not entry.name.endswith(("_cache", ".out")):
            shutil.copytree(entry, folder / entry.name, ignore=caches)
        elif entry.is_file():
            shutil.copy2(entry, folder / entry.name)


def markdown_below(folder: Path) -> list[Path]:
    """The Markdown documents of a folder that are ours: peers have environments with documents of others."""
    return [path for path in sorted(folder.rglob("*.md")) if ".venv" not in path.parts]


def starts_spark(text: str) -> bool:
    """Whether a program, or one of a document, starts a session of Spark."""
    return "local_session(" in text


def run_document(name: str, document: str, scratch: Path, forks: Forks | None = None) -> int:
    """Run the blocks of a document in `scratch`; return how many. `DocumentError` at the first fault.

    `forks` starts programs, if it is there.
    """
    found = blocks(document)
    runnable = [block for block in found if block.is_run]
    expected = {
        id(before): after for before, after in zip(found, found[1:], strict=False) if after.kind == "output"
    }
    for block in runnable:
        if block.file is not None:
            (scratch / block.file).write_text(block.text)
    program = [block for block in runnable if block.kind == "python" and block.file is None]
    printed = _run_program(name, program, scratch, forks) if program else []
    for block, output in zip(program, printed, strict=True):
        if id(block) in expected:
            _compare(f"{name}:{block.line}", expected[id(block)].lines, output)
    for block in runnable:
        if block.kind == "console":
            _run_console(name, block, scratch, forks)
        elif block.kind == "sh" and not _only_sets_up(block.lines):
            output = _run_shell(f"{name}:{block.line}", block.text, scratch)
            if id(block) in expected:
                _compare(f"{name}:{block.line}", expected[id(block)].lines, output)
    return len(runnable)


# The blocks arrive as JSON in argv. Each is padded to its place in the document, so that a traceback shows
# the document's own file and line; all so far are the file's source, as a notebook's cells are. The separator
# is printed in order with everything else.
_PROGRAM = """
import json, linecache, sys
name, separator, sources = json.loads(sys.argv.pop(1))
space = {"__name__": "__main__"}
shown = []
for line, source in sources:
    shown += ["\\n"] * (line - 1 - len(shown)) + (source + "\\n").splitlines(keepends=True)
    linecache.cache[name] = (sum(map(len, shown)), None, shown, name)
    exec(compile("\\n" * (line - 1) + source, name, "exec"), space)
    sys.stdout.flush()
    print(separator, flush=True)
"""
_SEPARATOR = "=-=-= end of block =-=-="


def _run_program(name: str, program: list[Block], scratch: Path, forks: Forks | None) -> list[str]:
    sources = [(block.line, block.text) for block in program]
    driver = scratch / "run_blocks_of_a_document.py"
    driver.write_text(_PROGRAM)
    command = [str(driver), json.dumps([str(ROOT / name), _SEPARATOR, sources])]
    code, output, errors = _run([sys.executable, *command], scratch, PROGRAM_SECONDS_MAX, forks)
    printed = output.split(_SEPARATOR + "\n")
    if code != 0:
        at = program[min(len(printed), len(program)) - 1].line
        raise DocumentError(f"{name}:{at}: the program failed ({_exit(code)})\n{output}\n{errors}")
    return printed[:-1]


def _run_console(name: str, block: Block, scratch: Path, forks: Forks | None) -> None:
    for line, command, shown in _commands(block):
        if _is_setup(command):
            continue
        output = _run_shell(f"{name}:{line}", command, scratch, forks)
        if any(text.strip() for text in shown):
            _compare(f"{name}:{line}", shown, output)


def _commands(block: Block) -> list[tuple[int, str, list[str]]]:
    """(line, command, lines shown under it) of a console block; a command may go on after a backslash."""
    found: list[tuple[int, str, list[str]]] = []
    goes_on = False
    for number, line in enumerate(block.lines, block.line):
        if goes_on:
            at, command, shown = found[-1]
            found[-1] = (at, command + "\n" + line, shown)
        elif line.startswith("$ "):
            found.append((number, line[2:], []))
        else:
            found[-1][2].append(line)
        goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    return found


def _is_setup(command: str) -> bool:
    return command.split(" ", maxsplit=1)[0] in SETUP_COMMANDS


def _only_sets_up(lines: tuple[str, ...]) -> bool:
    commands = [line for line in lines if line.strip() and not line.startswith("#")]
    return bool(commands) and all(_is_setup(command) for command in commands)


def _run_shell(where: str, script: str, scratch: Path, forks: Forks | None = None) -> str:
    program = _program_of(script, scratch) if forks else []
    if program:
        code, output, errors = _run([sys.executable, *program], scratch, COMMAND_SECONDS_MAX, forks)
    else:
        code, output, errors = _run(["sh", "-euc", script], scratch, COMMAND_SECONDS_MAX)
    if code != 0:
        raise DocumentError(f"{where}: the command failed ({_exit(code)}): {script}\n{output}\n{errors}")
    return output


def _program_of(command: str, scratch: Path) -> list[str]:
    """Return the arguments of Python if that is all which a command starts, and it starts no Spark."""
    if set(command) & set("\\\n$`*?~"):
        return []  # the shell has more to do
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    file = scratch / words[1] if len(words) > 1 else scratch
    is_program = words[0] == "python" and (words[1:2] == ["-m"] or file.suffix == ".py")
    if not is_program or any(set(word) <= set("|&;<>()") for word in words):
        return []
    return [] if file.is_file() and starts_spark(file.read_text()) else words[1:]


def _exit(code: int) -> str:
    return "took too long" if code == -signal.SIGKILL else f"exit {code}"


def _run(
    command: list[str], scratch: Path, seconds: float, forks: Forks | None = None
) -> tuple[int, str, str]:
    """Run in a process group of its own, so that nothing it started outlives it."""
    if forks is not None:
        process = forks(command[1:], _environment(scratch), scratch)
    else:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=_environment(scratch),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return process.returncode, output, errors


def _environment(scratch: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"],
        "PYTHONPATH": str(scratch),
        "COLUMNS": "100",
    }


def _compare(where: str, expected: tuple[str, ...] | list[str], output: str) -> None:
    wanted = [line.rstrip() for line in expected]
    while wanted and not wanted[-1]:
        wanted.pop()
    printed = output.rstrip()
    if not re.fullmatch(_pattern(wanted), "\n".join(line.rstrip() for line in printed.splitlines())):
        shown = "\n".join(wanted)
        raise DocumentError(f"{where}: shown is\n\n{shown}\n\nbut printed was\n\n{printed}\n")


def _pattern(lines: list[str]) -> str:
    """A regular expression for the lines; each ends in a newline or is the last."""
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*(?:\n|\Z))*?")
        else:
            within = ".*".join(re.escape(part) for part in line.split("..."))
            parts.append(within + r"(?:\n|\Z)")
    return "".join(parts)
