"""Masters of Spark for tests: a standalone one, with two of its workers, each on a host of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pyspark
from two_hosts import Host

from timely.spark.java import find_java

__all__ = ["standalone"]

_SMALL = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@contextlib.contextmanager
def standalone(hosts: tuple[Host, Host], folder: Path) -> Iterator[str]:
    """The URL of a master on the first host; a worker of Spark with two cores is on each of them."""
    with contextlib.ExitStack() as stack:
        first = hosts[0]
        where = ["--host", first.address, "--port", "0", "--webui-port", "0"]
        url = stack.enter_context(_java(first, _MASTER, where, folder, r"Starting Spark master at (\S+)"))
        for number, host in enumerate(hosts):
            place = [
                "--host",
                host.address,
                "--webui-port",
                "0",
                "--work-dir",
                str(folder / f"work-{number}"),
            ]
            room = ["--cores", "2", "--memory", "1g", url]
            said = r"Successfully registered with master"
            stack.enter_context(_java(host, _WORKER, [*place, *room], folder, said))
        yield url


@contextlib.contextmanager
def _java(host: Host, name: str, arguments: list[str], folder: Path, wanted: str) -> Iterator[str]:
    """A program of Spark, from the line on that says that it is ready: what that says, or the whole line."""
    java = find_java()
    jars = Path(pyspark.__file__).parent / "jars"
    log = f"-Dlog4j2.configurationFile={_logging(folder).as_uri()}"
    command = [*host.prefix, str(java.program), *_SMALL, log, "-cp", f"{jars}/*", name, *arguments]
    (core,) = jars.glob("spark-core_*.jar")
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_SCALA_VERSION": core.name.partition("_")[2].partition("-")[0],
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout)
        found = next((match for line in lines if (match := re.search(wanted, line))), None)
        assert found is not None, f"{name} did not start"
        threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()
        yield found[1] if found.groups() else found[0]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def _logging(folder: Path) -> Path:
    file = folder / "log4j2.properties"
    file.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    return file
