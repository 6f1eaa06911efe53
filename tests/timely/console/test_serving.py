"""A real server in front of a real cluster: what it tells, to whom, and how much of whatever it takes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import Visitor, until

import differential as dd
import timely
from timely.console.asking import ClusterWatch
from timely.console.serving import serve
from timely.limits import CONSOLE_PEERS_MAX, CONSOLE_QUERY_BYTES_MAX

SCRIPT = "<script>alert(1)</script>"
ALL_PLANES = "".join(chr((plane << 16) + 0x41) for plane in range(17)) + "\u202e\u0000\u2028'\"&"


def shop(dataflow: timely.Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "key: int, text: string")
    rows.export("rows")
    rows.output("rows")
    rows.group_by("key").agg(n=dd.count()).output(SCRIPT)


class Served(Visitor):
    """A visitor of a console, and what is behind it."""

    def __init__(self, cluster: timely.Cluster, flow: timely.Flow, console: timely.Console) -> None:
        super().__init__(console.address)
        self.cluster, self.flow, self.console = cluster, flow, console


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(shop)
        flow.input("rows").insert([(1, "a"), (1, ALL_PLANES), (2, "x" * (1 << 20)), (3, SCRIPT)])
        flow.seal(wait=True)
        with cluster.console() as console:
            yield Served(cluster, flow, console)


# enters_


def test_enters_by_the_token_and_stays_by_a_cookie_that_no_script_reads(served: Served) -> None:
    stranger = Visitor(served.console.address, enters=False)
    answer = stranger.get(f"/?token={stranger.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    flags = answer.headers["set-cookie"].lower()
    assert "httponly" in flags and "samesite=strict" in flags and stranger.token not in flags
    page = served.get("/")
    assert page.status == 200 and b'src="/static/main.js"' in page.body
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"  # the token is in no address that others see
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/", "/events", "/table?dataflow=0&output=rows", "/why?dataflow=0", "/explain?dataflow=0"]
    + ["/stage?dataflow=0&stage=0", "/metrics", "/static/main.js", "/nowhere"],
)
def test_enters_nobody_without_the_token(served: Served, path: str) -> None:
    stranger = Visitor(served.console.address, enters=False)
    joint = "&" if "?" in path else "?"
    for wrong in ("", "x", served.token[:-1], served.token + "x", "%00", "%F0%9F%98%80"):
        answer = stranger.get(f"{path}{joint}token={wrong}")
        assert answer.status == 403 and "set-cookie" not in answer.headers, wrong
    for cookie in ("", "x=y", served.cookie[:-1], f"other={served.cookie.partition('=')[2]}", "\xff" * 50):
        answer = stranger.get(path, Cookie=cookie)
        assert answer.status == 403 and b"Open the address" in answer.body
    assert stranger.get(path, Authorization="Bearer x").status == 403


def test_enters_prometheus_by_the_token_in_a_header(served: Served) -> None:
    scraper = Visitor(served.console.address, enters=False)
    answer = scraper.get("/metrics", Authorization=f"Bearer {served.token}")
    assert answer.status == 200 and "\nnaiad_up 1.0\n" in answer.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::1]x",
        "::::",
    ]
    + ["127.0.0.1@evil.example", "0x7f000001", "\xe9"],
)
def test_enters_no_other_host(served: Served, host: str) -> None:
    assert served.get("/", Host=host).status == 400
    assert served.get(f"/?token={served.token}", Host=host).status == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9999", "[::1]:8080", "10.1.2.3"])
def test_enters_by_names_and_addresses_of_ours(served: Served, host: str) -> None:
    assert served.get("/", Host=host).status == 200


def test_enters_no_page_of_another_origin(served: Served) -> None:
    ours = f"127.0.0.1:{served.port}"
    assert served.get("/stage?dataflow=0&stage=0", Origin=f"http://{ours}").status == 200
    for origin in ("http://evil.example", "null", "", f"http://{ours}.evil.example", "http://127.0.0.1:1"):
        assert served.get("/events", Origin=origin).status == 403, origin
        answer = served.ask("POST", "/query", b"show tables", Origin=origin, Content_Type="application/sql")
        assert answer.status == 403


# reads_


def test_reads_only_files_of_the_page(served: Served) -> None:
    assert served.get("/static/vendor/dagre.js").status == 200
    for path in (
        "/static/../command.py", "/static/..%2fcommand.py", "/static/%2e%2e/command.py", "/../../etc/passwd",
        "/static/....//command.py", "/static/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd", "/static//etc/passwd",
        "/static/..\\command.py", "/static/%00", "/static/vendor", "/static/" + "a/" * 3000,
    ):  # fmt: skip
        answer = served.get(path)
        assert answer.status in (400, 404) and b"import" not in answer.body, path


def test_reads_and_changes_nothing(served: Served) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert served.ask(method, "/", None).status == 405
    assert served.ask("POST", "/why?dataflow=0", b"").status == 405
    before = served.cluster.flows()
    for text in (
        "create table t (a int)", "insert into t values (1)", "delete from shop.rows", "drop table t",
        "select 1 as a; create table t (a int)", "subscribe select * from `shop.rows`",
        "create view v as select * from `shop.rows`",
    ):  # fmt: skip
        told = served.query(text)
        assert told.status == 409 and "<prompt>:1:" in told.text, text
    assert served.cluster.flows() == before


def test_reads_rows_by_sql(served: Served) -> None:
    told = served.query("select key, count(*) as n from `shop.rows` group by key order by key").value
    assert isinstance(told, dict)
    assert (told["rows"], told["total"]) == ([["1", "2"], ["2", "1"], ["3", "1"]], 3)
    assert served.query("explain select key from `shop.rows`").status == 200
    assert served.query("x" * (CONSOLE_QUERY_BYTES_MAX + 1)).status == 413
    assert served.ask("POST", "/query", b"show tables", Content_Type="text/plain").status == 415
    assert served.ask("POST", "/query", b"\xff", Content_Type="application/sql").status == 400
    assert set(served.cluster.flows()) == {served.flow.index}, "a query ends with its answer"


def test_reads_the_plan_of_a_view_as_written_and_as_it_runs(served: Served) -> None:
    served.cluster.sql(
        "create view busy as select key, count(*) as n from `shop.rows` where key > 1 group by key"
    )
    try:
        told = served.get(f"/explain?dataflow={served.cluster.flow('busy').index}").value
        assert isinstance(told, dict)
        assert told["note"].startswith("-- SQL view, dialect spark\ncreate view busy as select")
        assert "== as written ==" in told["plan"] and "filter(col.key > 1)" in told["plan"]
        assert "== after the rules" in told["plan"] and told["text"].startswith("'busy' on 2 workers")
    finally:
        served.cluster.sql("drop view busy")
    told = served.get(f"/explain?dataflow={served.flow.index}").value
    assert isinstance(told, dict)
    assert (told["note"], told["plan"]) == ("", "") and "'shop' on 2 workers" in told["text"]


def test_reads_texts_of_every_plane_and_the_beginning_of_long_ones(served: Served) -> None:
    with served.events(f"/table?dataflow={served.flow.index}&output=rows") as events:
        told = events.first("table")
    cells = [row[1] for row in told["rows"]]  # type: ignore[attr-defined]
    assert ALL_PLANES in cells and SCRIPT in cells
    (long,) = [cell for cell in cells if cell.startswith("xx")]
    assert long.endswith("… (1,048,576 characters)") and len(long) < 400


def test_reads_numbers_that_are_those_of_stats(served: Served) -> None:
    with served.events() as events:
        shape = events.first("shape")
        frame = events.first("frame", lambda each: each.get("flows"))
    told = [worker["dataflows"][served.flow.index] for worker in served.cluster.stats()]  # type: ignore[index,call-overload]
    (flow,) = frame["flows"]  # type: ignore[misc]
    stages = shape["flows"][str(served.flow.index)]["stages"]  # type: ignore[index]
    assert [stage["name"] for stage in stages] == [stage["name"] for stage in told[0]["stages"]]
    assert f"output {SCRIPT}" in [stage["name"] for stage in stages]
    assert [edge[1] for edge in flow["edges"]] == [
        sum(each["connectors"][place]["rows"] for each in told) for place in range(len(flow["edges"]))
    ]
    assert flow["stages"]["kept"] == [
        sum(
            (stage := each["stages"][place]).get("trace_bytes", 0)
            + sum(one["bytes"] for one in stage.get("arrangements", []))
            for each in told
        )
        for place in range(len(stages))
    ]
    stage = served.get(f"/stage?dataflow={served.flow.index}&stage=0").value
    assert [each["told"]["name"] for each in stage] == ["input rows"] * 2  # type: ignore[attr-defined]


def test_reads_what_is_not_there_as_an_error(served: Served) -> None:
    for path in ("/why?dataflow=77", "/why", "/explain?dataflow=-1", "/why?dataflow=" + "9" * 5000):
        assert served.get(path).status == 409, path
    assert served.get("/stage?dataflow=0&stage=99").value is None
    with served.events("/table?dataflow=77&output=x") as events:
        assert "dataflow 77" in str(events.first("table", lambda each: each["error"])["error"])


# limits_


def test_limits_the_connections_and_lets_go_of_those_that_say_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.console.web.connections.CONSOLE_REQUEST_SECONDS_MAX", 1.0)
    head = b"HTTP/1.1\r\nHost: localhost\r\n"
    body = b"Cookie: %s\r\nContent-Length: 100\r\n\r\nselect" % served.cookie.encode()
    begins = [b"", b"G", b"GET / " + head, b"POST /query " + head + body]
    opened: list[socket.socket] = []
    for number in range(10_000):
        if len(opened) >= CONSOLE_PEERS_MAX + 100:
            opened.pop(0).close()
        try:
            opened.append(socket.create_connection((served.host, served.port), 30))
            opened[-1].sendall(begins[number % len(begins)])
        except OSError:
            pass  # refused already
    try:
        assert len(opened) > CONSOLE_PEERS_MAX // 2
        until(lambda: all(map(is_closed, opened)))
    finally:
        for taken in opened:
            taken.close()
    assert served.get("/").status == 200


def is_closed(taken: socket.socket) -> bool:
    taken.setblocking(False)
    try:
        return taken.recv(1 << 16) == b"" or is_closed(taken)
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_limits_what_is_no_request(served: Served) -> None:
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /\r\n\r\n",
        b"A" * 200_000,
        b"GET / HTTP/9.9\r\n\r\n",
    ):
        with socket.create_connection((served.host, served.port), 30) as taken:
            try:
                taken.sendall(nonsense)
                taken.shutdown(socket.SHUT_WR)
                assert taken.recv(100).startswith(b"HTTP/1.1 400 ")
            except OSError:
                pass  # it has hung up in the middle of it
    assert served.get("/").status == 200


def test_limits_the_calls_that_wait_for_workers(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.console.web.app.CONSOLE_CALLS_MAX", 0)
    for path in ("/metrics", "/why?dataflow=0", "/explain?dataflow=0", "/stage?dataflow=0&stage=0"):
        assert served.get(path).status == 503, path
    assert served.query("show tables").status == 503 and served.get("/").status == 200


def test_limits_nobody_who_reads_to_the_pace_of_one_that_does_not(served: Served) -> None:
    with socket.create_connection((served.host, served.port), 30) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie}\r\n\r\n".encode())
        with served.events() as events:
            until(lambda: sum(name == "frame" for name, _ in events.all) > 8)


def test_limits_how_long_a_connection_takes_no_bytes(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.console.web.connections.CONSOLE_STALLED_SECONDS_MAX", 0.5)
    path, times = "/static/vendor/uplot.js", 400
    size = len(served.get(path).body) * times
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.settimeout(5)
        stalled.connect((served.host, served.port))
        one = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie}\r\n\r\n"
        stalled.sendall(one.encode() * times)
        time.sleep(1.5)
        taken = 0
        try:
            while part := stalled.recv(1 << 20):
                taken += len(part)
        except OSError:
            pass  # it was cut off
    assert taken < size, "what it has not taken in time is dropped"
    assert served.get("/").status == 200


# asks_


def test_asks_as_often_for_twenty_pages_as_for_one_and_not_at_all_for_none(served: Served) -> None:
    own = serve(lambda: ClusterWatch(served.cluster), "127.0.0.1", 0)
    try:
        visitor = Visitor(own.address)
        until(lambda: not len(own.watch.lookers))
        asked = own.watch.asked
        time.sleep(0.6)
        assert own.watch.asked == asked, "nobody looks"
        streams = [visitor.events() for _ in range(20)]
        pages = [stream.__enter__() for stream in streams]
        try:
            for page in pages:
                page.first("frame", lambda each: each.get("flows"))
            asked, began = own.watch.asked, time.monotonic()
            time.sleep(1.5)
            most = (time.monotonic() - began) / 0.25 + 1
            assert 0 < own.watch.asked - asked <= most
            frames = {tuple(str(value) for name, value in page.all if name == "frame")[-2] for page in pages}
            assert len(frames) <= 2, "all see the same frames"
        finally:
            for stream in streams:
                stream.__exit__(None, None, None)
        until(lambda: not len(own.watch.lookers))
    finally:
        own.close()


def test_asks_what_holds_an_epoch_once_for_all_pages(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int | None]] = []
    why = timely.Flow.why

    def counted(flow: timely.Flow, epoch: int | None = None) -> object:
        asked.append((flow.index, epoch))
        return why(flow, epoch)

    monkeypatch.setattr(timely.Flow, "why", counted)
    monkeypatch.setattr("timely.console.web.app._SHARED_SECONDS", 60.0)
    paths = [f"/why?dataflow={served.flow.index}&epoch={epoch}" for epoch in (7, 8)]
    texts = {path: {served.get(path).text for _ in range(10)} for path in paths}
    assert asked == [(served.flow.index, 7), (served.flow.index, 8)]
    assert all(len(each) == 1 for each in texts.values()) and "epoch 8" in texts[paths[1]].pop()
    monkeypatch.setattr("timely.console.web.app._SHARED_SECONDS", 0.0)
    served.get(paths[0])
    assert len(asked) == 3, "an answer is of its time"


def test_a_page_of_ones_own_is_guarded_as_the_console_is(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    with pytest.raises(timely.MisuseError, match=r"page has no index\.html"):
        served.cluster.console(page=folder)
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>mine</title>")
    (tmp_path / "secret.txt").write_text("not of the page")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    with served.cluster.console(page=str(folder)) as console:
        assert "/page/?token=" in console.address
        stranger = Visitor(console.address, enters=False)
        assert stranger.get("/page/").status == 403
        assert stranger.get("/page/?token=x").status == 403
        answer = stranger.get(f"/page/?token={stranger.token}")
        assert (answer.status, answer.headers["location"]) == (303, "/page/")
        visitor = Visitor(console.address)
        page = visitor.get("/page/")
        assert b"mine" in page.body and page.headers["content-security-policy"].startswith(
            "default-src 'none'"
        )
        for path in ("/page/../secret.txt", "/page/%2e%2e/secret.txt", "/page/link.txt", "/page/none.js"):
            assert visitor.get(path).status == 404, path
        assert b'src="/static/main.js"' in visitor.get("/").body
    assert served.get("/page/").status == 404


def test_a_page_of_ones_own_that_changes_or_goes_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_cluster() -> timely.Cluster:
        raise timely.PeerError("there is none")

    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    (folder / "itself").symlink_to("itself")
    monkeypatch.chdir(tmp_path)
    server = serve(lambda: ClusterWatch(None, no_cluster), "127.0.0.1", 0, page=Path("page"))
    try:
        visitor = Visitor(server.address)
        moved = tmp_path / "moved"
        folder.rename(moved)
        assert visitor.get("/page/").status == 404, "gone before anybody looked"
        moved.rename(folder)
        monkeypatch.chdir(folder)
        assert visitor.get("/page/").text == "mine", "the program has gone to another folder"
        assert visitor.get("/page/itself").status == 404
        (folder / "index.html").unlink()
        assert visitor.get("/page/").status == 404 and visitor.get("/").status == 200
    finally:
        server.close()


def test_a_port_that_is_taken_is_said(served: Served) -> None:
    with pytest.raises(timely.MisuseError, match=rf"127\.0\.0\.1:{served.port} is taken"):
        served.cluster.console(served.port)
    with pytest.raises(timely.MisuseError, match="70000 is no port"):
        served.cluster.console(70000)
