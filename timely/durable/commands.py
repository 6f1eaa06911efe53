"""`python -m timely.durable`: look at a store, check it, copy it, fold it, and remove what is not needed any
more.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from uuid import uuid4

from ..counted import counted
from ..dictionaries import dictionaries
from ..errors import StoreError, TimelyError
from ..limits import REPLY_SECONDS_MAX
from .accepting import accept
from .answers.asking import ask, fulfil, requests_in
from .answers.manifest import Answer, answer_numbers, newest_answer, read_answer, stored_bytes
from .answers.old import prune_answers
from .bases.coverage import Logs, logs_of
from .bases.cuts import cut_logs
from .bases.facts import FoldFacts
from .bases.files import check_bytes, checked_file
from .bases.folding import fold
from .bases.manifest import (
    BASES_KEPT_DEFAULT,
    Base,
    SegmentName,
    base_numbers,
    read_base,
)
from .bases.positions import latest_places
from .bases.pruning import prune
from .bases.rows_form import RowsForm
from .folder_store import FolderStore
from .following.copying import copy_store
from .incarnations import Incarnation, announce, joined, newest, newest_fence
from .past import Past, PastFlow, read_orders

__all__ = ["main", "parser", "run_command"]

_NICE: Final = 19
_POLL_SECONDS: Final = 0.05
_ATTEMPTS_MAX: Final = 5
_ANSWER_ADVICE: Final = (
    "Remove the manifests that name it: the answer before counts then, and the next fold stores another one"
)

_T = TypeVar("_T")
_Run: TypeAlias = Callable[[argparse.Namespace], Iterator[str]]
"""Carries out a command, and yields the lines of its result."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command sets `run`."""
    own = argparse.ArgumentParser(prog="python -m timely.durable", description=__doc__)
    commands = own.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: _Run, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("folder", help="the folder of the store")
        added.set_defaults(run=run)
        return added

    command("inspect", _inspect, "say what is in a store; its cluster may be running")
    command("verify", _verify, "check that all files are as they were written; the cluster may be running")
    copies = command("copy", _copy, "copy a store, for a backup; the cluster may be running")
    copies.add_argument("to", metavar="TO", help="the folder to make")
    folds = command("fold", _fold, "sum up the logs of a store, and store answers; a running cluster does it")
    folds.add_argument(
        "--forget",
        action="store_true",
        help="forget the changes of outputs up to the last sealed epoch, although no client has said so; its "
        "cluster must not be running",
    )
    folds.add_argument("--incarnation", type=int, default=0, help=argparse.SUPPRESS)
    folds.add_argument("--cut", default="", help=argparse.SUPPRESS)
    folds.add_argument("--in-use", type=int, action="append", default=[], help=argparse.SUPPRESS)
    folds.add_argument("--nice", type=int, default=_NICE, help=argparse.SUPPRESS)
    accepts = command(
        "accept", _accept, "go on with the answers that dataflow FLOW gives now, though it has shown others"
    )
    accepts.add_argument("flow", metavar="FLOW", help="its number or key, as errors name it")
    prunes = command("prune", _prune, "remove old bases and logs of a store whose cluster is not running")
    prunes.add_argument(
        "--keep",
        type=int,
        default=BASES_KEPT_DEFAULT,
        help="how many bases to keep, and stored answers of each output (default: %(default)s)",
    )
    return own


def run_command(arguments: Sequence[str] | None = None) -> list[str]:
    """Carry out a command, and return the lines of its result. Raise a `TimelyError` if it fails; exit with
    status 2 and the usage if the line is malformed.
    """
    options = parser().parse_args(arguments)
    run: _Run = options.run
    return list(run(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; return the exit status."""
    try:
        for line in run_command(arguments):
            sys.stdout.write(f"{line}\n")
    except TimelyError as error:
        sys.stderr.write(f"timely.durable: {error}\n")
        return 1
    return 0


def _store(options: argparse.Namespace) -> FolderStore:
    if not Path(options.folder).is_dir():  # the store would make it
        raise StoreError(f"there is no folder {options.folder}")
    return FolderStore(options.folder)


def _present(store: FolderStore) -> Incarnation:
    present = newest(store)
    if present is None:
        raise StoreError(f"{store.name} is no store of a durable cluster, or its cluster has never begun")
    return present


def _unless_folded(store: FolderStore, read: Callable[[Incarnation], _T]) -> _T:
    """Return what `read` returns for the newest incarnation. If that fails, read anew: the cluster may be
    running, and a fold may have removed files that nothing needs any more. Raise the error if the same logs
    count as before.
    """
    before: Incarnation | None = None
    for left in reversed(range(_ATTEMPTS_MAX)):
        present = None
        try:
            present = _present(store)
            return read(present)
        except StoreError:
            if not left or present == before:
                raise
        before = present
    raise AssertionError("the last attempt returns or raises")


def _orders(store: FolderStore, present: Incarnation) -> tuple[Incarnation, Logs, Past]:
    logs = logs_of(store, present)
    return present, logs, read_orders(logs)


def _count_records(store: FolderStore, present: Incarnation) -> int:
    return sum(1 for _ in Logs(store, present.logs, Base()).records())


def _inspect(options: argparse.Namespace) -> Iterator[str]:
    store = _store(options)
    present, logs, past = _unless_folded(store, partial(_orders, store))
    logged = sum(
        end
        for log in present.logs
        for path, end in log.segments
        if not logs.base.covers(SegmentName.of(path))
    )
    workers = counted(present.workers, "worker")
    yield f"cluster {present.cluster}, incarnation {present.number} with {workers}"
    for number in base_numbers(store):
        try:
            base = read_base(store, number)
        except StoreError:
            if number in base_numbers(store):
                raise
            continue  # a fold has just removed it
        yield f"base {number}: {_size_of(base):,} bytes in {counted(len(base.files()), 'file')}"
    yield f"logs since the newest base: {logged:,} bytes"
    answers = _answers(store)
    for flow in past.flows.values():
        yield from _described(flow)
        yield from _stored(each for each in answers if each.dataflow == flow.number)
    yield from _gone(past)
    yield from _stored(each for each in answers if each.dataflow not in past.flows)


def _described(flow: PastFlow) -> Iterator[str]:
    """Yield what there is of a dataflow."""
    base, facts = flow.base, flow.fold_facts
    yield f"dataflow {flow.number} ({flow.key}): epoch {flow.sealed + 1} is open"
    if base is not None and base.summed >= 0:
        yield f"  inputs are summed up to epoch {base.summed}; answers begin at epoch {base.right_from}"
    if facts.lookback:
        yield f"  answers look back {counted(facts.lookback, 'epoch')}"
    for name, each in {} if base is None else base.inputs.items():
        yield f"  input {name!r}: {counted(each.rows, 'row')} in the base"
    for name, output in {} if base is None else base.outputs.items():
        if output.kept_from < output.kept_before:
            yield f"  output {name!r}: changes from epoch {output.kept_from} on are kept"
        else:
            yield f"  output {name!r}: changes before epoch {output.kept_from} are forgotten"
    for (output_name, reader), (epoch, _, heard) in latest_places(flow.places).items():
        minutes = counted(max(0, int(time.time() - heard)) // 60, "minute")
        yield f"  reader {reader!r} of output {output_name!r} is at epoch {epoch}, heard of {minutes} ago"
    yield from _whole(facts)


def _stored(answers: Iterable[Answer]) -> Iterator[str]:
    """Yield what is stored of outputs."""
    for each in answers:
        if each.folder:
            rows, size = counted(each.rows, "row"), f"{each.size_bytes:,} bytes"
            where = f"epoch {each.epoch}: {rows}, {size} in {each.folder}"
            yield f"  output {each.output!r} is stored as of {where}"
        if each.why and each.why_epoch < 0:
            yield f"  output {each.output!r}: {each.why}"
        elif each.why:
            yield f"  output {each.output!r} is not stored as of epoch {each.why_epoch}: {each.why}"


def _whole(facts: FoldFacts) -> Iterator[str]:
    for reason in facts.reasons():
        yield f"  the whole history is kept of {reason}"


def _gone(past: Past) -> Iterator[str]:
    for number, (reason, _) in past.gone.items():
        yield f"dataflow {number} has ended: {reason}"


def _verify(options: argparse.Namespace) -> Iterator[str]:
    store = _store(options)
    damage: list[str] = []
    bases: list[Base] = []
    for number in base_numbers(store):
        try:
            base = read_base(store, number)
            for file in base.files().values():
                checked_file(store, number, file)
        except StoreError as error:
            if number in base_numbers(store):  # a fold may just have removed it
                damage.append(str(error))
        else:
            bases.append(base)
            yield f"base {number} is whole: {counted(len(base.files()), 'file')}, {_size_of(base):,} bytes"
    yield from _verify_answers(store, damage)
    try:
        records = _unless_folded(store, partial(_count_records, store))
    except StoreError as error:
        damage.append(str(error))
    else:
        yield f"the logs are whole: {counted(records, 'record')}"
    if damage:
        whole = f"base {bases[-1].number} is whole" if bases else "no base is whole"
        raise StoreError("\n".join([*damage, f"Beside that, {whole}."]))


def _verify_answers(store: FolderStore, damage: list[str]) -> Iterator[str]:
    """Yield which stored answers are whole, and add to `damage` what is wrong with others."""
    for place, numbers in answer_numbers(store).items():
        for number in numbers:
            try:
                answer = read_answer(store, place, number)
                for file in answer.files:
                    check_bytes(store, file.path, file.size_bytes, file.crc, lambda: _ANSWER_ADVICE)
            except StoreError as error:
                if number in answer_numbers(store).get(place, ()):
                    damage.append(str(error))
            else:
                files = counted(len(answer.files), "file")
                yield f"answer {place}.{number:06} is whole: {files}, {answer.size_bytes:,} bytes"


def _copy(options: argparse.Namespace) -> Iterator[str]:
    store, to = _store(options), Path(options.to)
    if os.path.lexists(to):
        raise StoreError(f"{to} is there already: give a folder that is not")
    if to.resolve().is_relative_to(Path(options.folder).resolve()):
        raise StoreError(f"{to} is in the store itself, and would be lost with it: give a folder elsewhere")
    part = to.with_name(f"{to.name}.part-{uuid4().hex}")
    try:
        present = copy_store(store, FolderStore(part))
        part.rename(to)  # a folder of this name is a whole copy
    except OSError as error:
        raise StoreError(f"{store.name} was not copied to {to}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    yield f"{to} has the cluster as it is in incarnation {present.number}"


def _fold(options: argparse.Namespace) -> Iterator[str]:
    store = _store(options)
    if options.cut:  # a running cluster wants it: see `timely/worker/durability/folds/fold_process.py`
        os.nice(options.nice)
        present = joined(store, options.incarnation)
        base = fold(cut_logs(store, present, options.cut), live=present.number, tidy=_tidy)
        store.remove_unfinished()
        prune(store, present.number, in_use=options.in_use)
        prune_answers(store, present.number)
        yield str(_size_of(base) + stored_bytes(store))
        return
    if options.forget:
        store.lock(
            "fold"
        )  # a cluster that runs would fold, and not forget: its clients say what may be forgotten
    elif not _locked_or_folded(store):
        for line in _stored(_answers(store)):
            yield line.strip()
        return
    try:
        _present(store)
        # An incarnation of its own: what it reads is fixed, and no worker that wakes up adds to it.
        present = announce(store, workers=1)
        base = fold(logs_of(store, present), forgets=options.forget, tidy=_tidy)
        store.remove_unfinished()
        removed = [*prune(store, present.number), *prune_answers(store, present.number)]
        fulfil(store, requests_in(store))
    finally:
        store.unlock()
    number = 0 if base is None else base.number
    yield f"base {number}: {_size_of(base):,} bytes; {counted(len(removed), 'file')} removed"
    for line in _stored(_answers(store)):
        yield line.strip()


def _locked_or_folded(store: FolderStore) -> bool:
    """Lock the store, and return True; or, if its cluster runs, let that fold, and return False."""
    until = time.monotonic() + REPLY_SECONDS_MAX
    request = ""
    while True:
        try:
            store.lock("fold")
        except StoreError as error:
            if error.__cause__ is not None:  # the disk, and not another process
                raise
            if request and not store.exists(request):
                return False
            request = request or ask(store)
            if time.monotonic() > until:
                fulfil(store, [request])
                raise StoreError(
                    f"{error}. This command has asked it to fold, in vain: see its log"
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return True


def _accept(options: argparse.Namespace) -> Iterator[str]:
    store = _store(options)
    store.lock("accept")
    try:
        _present(store)
        accepted = accept(store, options.flow)
    finally:
        store.unlock()
    for number, key in accepted:
        yield (
            f"dataflow {number} ({key}): the answers that it gives from the next start on count. If you keep "
            "rows of its outputs, read them anew"
        )


def _prune(options: argparse.Namespace) -> Iterator[str]:
    if options.keep < 1:
        raise StoreError(f"--keep {options.keep}: keep at least one base, for the logs before it are gone")
    store = _store(options)
    store.lock("prune")
    try:
        _present(store)
        fence = newest_fence(store)
        store.remove_unfinished()
        removed = prune(store, fence, count=options.keep)
        removed += prune_answers(store, fence, count=options.keep, seconds=0.0)
    finally:
        store.unlock()
    yield from (f"removed {path}" for path in removed)
    yield f"{counted(len(removed), 'file')} removed"


def _answers(store: FolderStore) -> list[Answer]:
    """Return what is stored of outputs, without what cannot be read: `verify` tells of that."""
    newest = (newest_answer(store, place, numbers) for place, numbers in answer_numbers(store).items())
    return [answer for answer in newest if answer is not None]


def _size_of(base: Base | None) -> int:
    return 0 if base is None else sum(file.size_bytes for file in base.files().values())


def _tidy(forms: Sequence[RowsForm]) -> None:
    """Forget symbols that no row needs which is in these forms. This process has no other rows."""
    for dictionary in dictionaries():
        if dictionary.is_full:
            dictionary.begin()
            marking = dictionary.marking()
            for form in forms:
                for words in form.words():
                    marking.add(words)
            dictionary.forget(marking)
