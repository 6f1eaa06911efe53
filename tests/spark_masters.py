"""Masters of Spark for tests: a standalone one, with two of its workers, each on a host of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyspark
from two_hosts import Host

from timely.spark.java import archive_options, find_java
from timely.spark.session import java_options

__all__ = ["quick_executors", "standalone"]

_SMALL = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


def quick_executors() -> dict[str, str]:
    """Settings with which executors start as quickly as `local_session` does."""
    options = [*java_options(long_jobs=False), *archive_options(find_java())]
    return {"spark.executor.extraJavaOptions": " ".join(options)}


@contextlib.contextmanager
def standalone(hosts: tuple[Host, Host], folder: Path) -> Iterator[str]:
    """The URL of a master on the first host; a worker of Spark with two cores is on each of them."""
    with contextlib.ExitStack() as stack:
        where = ["--host", hosts[0].address, "--port", "0", "--webui-port", "0"]
        url = _said(stack.enter_context(_java(hosts[0], _MASTER, where, folder)), "Starting Spark master at ")
        room = ["--webui-port", "0", "--cores", "2", "--memory", "1g", url]
        places = [["--host", host.address, "--work-dir", str(folder / host.address)] for host in hosts]
        workers = [
            stack.enter_context(_java(host, _WORKER, [*place, *room], folder))
            for host, place in zip(hosts, places, strict=True)
        ]
        for worker in workers:
            _said(worker, "Successfully registered with master ")
        yield url


def _said(process: subprocess.Popen[str], wanted: str) -> str:
    """The word behind `wanted` in a line of what a program prints; the rest is not kept."""
    assert process.stdout is not None
    found = next((line for line in process.stdout if wanted in line), None)
    assert found is not None, f"it has ended before it said {wanted!r}"
    threading.Thread(target=_pass_over, args=(process.stdout,), daemon=True).start()
    return found.partition(wanted)[2].split()[0]


def _pass_over(lines: IO[str]) -> None:
    with contextlib.suppress(ValueError):  # closed meanwhile
        for _ in lines:
            pass


@contextlib.contextmanager
def _java(host: Host, name: str, arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of Spark."""
    java = find_java()
    jars = Path(pyspark.__file__).parent / "jars"
    log = f"-Dlog4j2.configurationFile={_logging(folder).as_uri()}"
    (core,) = jars.glob("spark-core_*.jar")
    (first,) = jars.glob("slf4j-api-*.jar")
    # As PySpark has it: the archive of classes is of these, in this order.
    classes = os.pathsep.join([str(jars.parent / "conf"), str(first), f"{jars}/*"])
    archive = [option.strip('"') for option in archive_options(java)]
    command = [
        *host.prefix, str(java.program), *_SMALL, *archive, log, "-cp", classes, name, *arguments
    ]  # fmt: skip
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_SCALA_VERSION": core.name.partition("_")[2].partition("-")[0],
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def _logging(folder: Path) -> Path:
    file = folder / "log4j2.properties"
    file.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    return file
