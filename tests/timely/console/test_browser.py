"""The page in a real browser, in front of a cluster of two processes. All claims share one of each, in this
order: the last one kills a worker.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from statistics import median
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from browsers import Page, opened
from console_flows import SCRIPT, fails, long_one, naps, network, shop, two_inputs, two_outputs

import timely
from timely.client.reports.figures import figures
from timely.console.asking import ClusterWatch
from timely.console.serving import PageServer, serve


class Shown:
    """A cluster, its console, and a page of that."""

    def __init__(self, cluster: timely.Cluster, server: PageServer, page: Page) -> None:
        self.cluster, self.server, self.page = cluster, server, page
        self.flow = cluster.install(shop)
        self.graph = cluster.install(network)

    def epoch(self, rows: int = 100) -> None:
        """Let an epoch come and be complete."""
        first = self.flow.epoch * rows
        table = pa.table(
            {
                "id": np.arange(first, first + rows),
                "customer": [f"customer {number % 7}" for number in range(rows)],
                "cents": np.arange(rows) % 10,
            }
        )
        self.flow.input("orders").insert(table)
        self.flow.seal(wait=True)


@pytest.fixture(scope="module")
def shown() -> Iterator[Shown]:
    with timely.connect(workers=2, silence_seconds=120) as cluster:
        server = serve(lambda: ClusterWatch(cluster), "127.0.0.1", 0)
        try:
            with opened() as page:
                shown = Shown(cluster, server, page)
                shown.epoch()
                shown.graph.input("edges").insert([(1, 2), (2, 3), (5, 6)])
                shown.graph.seal(wait=True)
                page.driver.get(server.address)
                page.shows("header", "all 2 dataflows keep up")
                page.run("globalThis.neverLoadedAgain = true")
                yield shown
        finally:
            server.close()


@pytest.fixture(autouse=True)
def nothing_breaks(shown: Shown) -> Iterator[None]:
    """Whatever is done, the page is the same one, and the browser has not complained."""
    yield
    assert shown.page.run("return globalThis.neverLoadedAgain === true"), "it was loaded again"
    assert shown.page.errors() == []
    assert shown.page.run("return document.title") == "naiad console"
    assert "[object" not in shown.page.text("body")


def test_the_token_is_in_no_address_any_more(shown: Shown) -> None:
    address = str(shown.page.run("return location.href"))
    assert "token" not in address and "token" not in str(shown.page.run("return document.cookie"))


def test_numbers_are_those_of_stats(shown: Shown) -> None:
    page = shown.page
    page.go("")
    time.sleep(0.6)  # rates of the last epoch are over
    stats = shown.cluster.stats()
    told = {flow.dataflow: flow for flow in figures(stats, stats, 1.0).dataflows}
    rows = page.run("return [...document.querySelectorAll('.card')][0].querySelectorAll('tbody tr').length")
    assert rows == len(told)
    for index, flow in told.items():
        cells = page.run(
            "const lines = [...document.querySelectorAll('tbody tr')];"
            "const line = lines.find((e) => e.querySelector(arguments[0]));"
            "return [...line.children].map((e) => e.dataset.value)",
            f"a[href='#/flow/{index}']",
        )
        assert isinstance(cells, list)
        name, state, epoch, complete, behind, _, _, _, kept, _ = cells
        assert (name, state) == (flow.name.rpartition(":")[2], "good")
        assert (int(epoch), int(complete), int(behind)) == (flow.epoch, flow.complete_before, 0)
        assert int(kept) == flow.kept_bytes
    page.go(f"flow/{shown.flow.index}/graph/1")
    stage = figures(stats, stats, 1.0).stages[1]
    page.shows(".side", stage.name, f"{stage.kept_rows:,} rows", "its readers", "the export")
    assert page.run("return document.querySelectorAll('.side .track .part.run').length") == 2, (
        "of each worker"
    )
    totals = [
        sum(told["dataflows"][shown.flow.index]["connectors"][0]["rows"] for told in stats)  # type: ignore[index,call-overload,misc]
    ]
    assert f"{totals[0]:,} rows since the start" in page.text(".edge title")


def test_a_graph_has_a_box_for_each_stage_and_each_loop_and_can_be_coloured(shown: Shown) -> None:
    page = shown.page
    page.go(f"flow/{shown.graph.index}/graph")
    page.shows(".canvas", "input edges", "loop", "output components")
    (worker, _) = shown.cluster.stats()
    stages = worker["dataflows"][shown.graph.index]["stages"]  # type: ignore[index,call-overload]
    assert page.run("return document.querySelectorAll('.box').length") == len(stages)  # type: ignore[arg-type]
    for colour in ("bytes", "skew", "waiting", "rows", "busy"):
        page.click(f"[data-colour={colour}]")
        assert page.run("return document.querySelector('[aria-pressed=true]').dataset.colour") == colour
    page.click("[data-colour=bytes]")
    page.until(
        lambda: page.run("return [...document.querySelectorAll('.heat')].some((e) => +e.style.opacity > .9)")
    )
    scale = "return document.querySelector('.canvas > g').getAttribute('transform')"
    before = page.run(scale)
    page.run("document.querySelector('.canvas').dispatchEvent(new WheelEvent('wheel', {deltaY: -300}))")
    assert page.run(scale) != before
    page.click(".tools input[type=checkbox]")
    page.until(lambda: page.run("return document.querySelectorAll('.box').length") != len(stages))  # type: ignore[arg-type]
    page.click(".tools input[type=checkbox]")


def test_a_narrow_window_keeps_the_graph_and_cuts_nothing_off(shown: Shown) -> None:
    page = shown.page
    before = page.driver.get_window_size()
    page.driver.set_window_size(620, 860)
    try:
        for view in ("", "help", f"flow/{shown.graph.index}/graph/1"):
            page.go(view)
            page.until(
                lambda: page.run(
                    "document.getElementById('verdict').textContent = 'it waits '.repeat(30);"
                    "return document.documentElement.scrollWidth <= innerWidth"
                )
            )
        page.shows(".side", "busy, by worker")
        page.until(lambda: page.run("return document.querySelector('.canvas').clientHeight > 300"))
    finally:
        page.driver.set_window_size(before["width"], before["height"])


def test_names_are_texts_whatever_is_in_them(shown: Shown) -> None:
    page = shown.page
    page.go(f"flow/{shown.flow.index}/graph")
    page.shows(".canvas .box title", f"output {SCRIPT}")
    page.go("outputs")
    page.shows("main", SCRIPT)
    page.click("a[href*='script']")
    page.shows("main h1", SCRIPT)
    page.shows("#counts", "rows")
    assert page.run("return document.querySelectorAll('main img, main script').length") == 0


def test_it_follows_within_half_a_second(shown: Shown) -> None:
    page = shown.page
    page.go("")
    page.until(lambda: median(followed(shown) for _ in range(7)) < 0.5)


def followed(shown: Shown) -> float:
    """How long the page takes to show an epoch."""
    shown.page.run(
        "const wanted = arguments[0]; globalThis.seen = 0;"
        "const looks = setInterval(() => {"
        "  const lines = [...document.querySelectorAll('tbody tr')];"
        "  const line = lines.find((e) => e.querySelector(arguments[1]));"
        "  if (!line || +line.children[2].dataset.value !== wanted) return;"
        "  clearInterval(looks); globalThis.seen = Date.now();"
        "}, 5)",
        shown.flow.epoch + 1,
        f"a[href='#/flow/{shown.flow.index}']",
    )
    began = time.time()
    shown.epoch()
    shown.page.until(lambda: shown.page.run("return globalThis.seen"))
    return float(str(shown.page.run("return globalThis.seen"))) / 1000 - began


def test_an_output_is_a_live_table_that_sorts_filters_and_marks(shown: Shown) -> None:
    page = shown.page
    page.go(f"flow/{shown.flow.index}/output/totals")
    page.shows("#counts", "7 rows")
    shown.page.until(lambda: page.texts(".rows tbody td:first-child") == [f"customer {n}" for n in range(7)])
    page.run(
        "globalThis.marked = new Set(); const looks = (list) => list.forEach((m) => {"
        "if (m.target.classList.contains('changed')) globalThis.marked.add(m.target.cellIndex) });"
        "new MutationObserver(looks).observe(document.querySelector('.rows'),"
        "{subtree: true, attributes: true, attributeFilter: ['class']})"
    )
    shown.epoch()
    page.until(lambda: page.run("return globalThis.marked.size"))
    assert page.run("return [...globalThis.marked]") == [1], "sums have changed, and no customer"
    page.click(".rows th:nth-child(2)")
    page.shows(".rows th[aria-sort=ascending]", "cents")
    page.until(lambda: (sums := [*map(int, page.texts(".rows td:nth-child(2)"))]) and sums == sorted(sums))
    page.write("input[type=search]", "CUSTOMER 3")
    page.until(lambda: page.texts(".rows tbody td:first-child") == ["customer 3"])
    page.shows("#counts", "1 rows that match, of 7")


def test_an_output_that_is_left_is_not_opened_again(shown: Shown) -> None:
    page = shown.page
    page.go("help")
    page.shows("main", "what to look at")
    page.go(f"flow/{shown.flow.index}/output/totals")
    page.shows("#counts", "7 rows")
    page.run(
        "globalThis.opened = []; const Plain = globalThis.EventSource;"
        "globalThis.EventSource = class extends Plain {"
        "  constructor(address) { super(address); globalThis.opened.push(address) }}"
    )
    page.write("input[type=search]", "3")
    page.until(lambda: page.run("return globalThis.opened.length") == 1)
    page.write("input[type=search]", "34")  # it waits a moment for more
    page.go("help")
    page.shows("main", "what to look at")
    time.sleep(0.5)
    assert page.run("return globalThis.opened.length") == 1
    page.run("globalThis.EventSource = Object.getPrototypeOf(globalThis.EventSource)")
    page.go(f"flow/{shown.flow.index}/output/50%")
    page.shows("main h1", "50%")


def test_tables_of_several_epochs_are_told_in_the_end_and_so_is_the_end_of_their_dataflow(
    shown: Shown,
) -> None:
    page = shown.page
    flow = shown.cluster.install(two_outputs)
    page.run(
        "globalThis.told = {}; import('/static/following.js').then((m) => { globalThis.ends = m"
        ".followTogether('two_outputs', {fast: {}, slow: {}}, (each) => { globalThis.told = each; }); })"
    )
    last = "return [told.tables?.fast.rows.length ?? -1, told.epoch ?? '', told.error ?? '']"
    page.until(lambda: page.run(last) == [0, -1, ""])
    for epoch in range(3):  # each comes sooner after the one before than tables of several epochs are told
        flow.input("fast").insert([epoch])
        flow.input("fast").seal()
        page.until(lambda rows=epoch + 1: page.run(last) == [rows, "", ""], 10)  # type: ignore[misc]
    flow.uninstall()
    page.until(lambda: page.run(last) == [-1, "", "no dataflow two_outputs is there any more"], 10)
    page.run("globalThis.ends()")


def test_a_hundred_thousand_changes_a_second_do_not_block_it(shown: Shown) -> None:
    page = shown.page
    page.go(f"flow/{shown.flow.index}/output/{quote(SCRIPT, safe='')}")
    page.shows("#counts", "rows")
    page.run(
        "globalThis.longest = 0; let last = performance.now(); globalThis.looks = setInterval(() => {"
        "  const now = performance.now();"
        "  globalThis.longest = Math.max(globalThis.longest, now - last); last = now }, 20)"
    )
    total = int(str(page.run("return document.getElementById('counts').dataset.total")))
    for _ in range(8):
        shown.epoch(25_000)
    page.until(lambda: page.run("return +document.getElementById('counts').dataset.total") == total + 80_000)
    assert page.run("return document.querySelectorAll('.rows tbody tr').length") == 200
    page.run("clearInterval(globalThis.looks)")
    assert float(str(page.run("return globalThis.longest"))) < 1000


def test_a_hidden_page_asks_for_nothing(shown: Shown) -> None:
    page, driver = shown.page, shown.page.driver
    here = driver.current_window_handle
    driver.switch_to.new_window("tab")
    try:
        page.until(lambda: not len(shown.server.watch.lookers))
        asked = shown.server.watch.asked
        time.sleep(0.6)
        assert shown.server.watch.asked <= asked + 1
    finally:
        driver.close()
        driver.switch_to.window(here)
    page.until(lambda: len(shown.server.watch.lookers))


def test_dataflows_come_are_replaced_and_end_without_the_page_being_loaded_again(shown: Shown) -> None:
    page = shown.page
    page.go("")
    failing = shown.cluster.install(fails)
    page.shows("nav", failing.name.rpartition(":")[2])
    failing.input("records").insert([1])
    failing.seal()
    page.shows(".ended", "ended by an error", "no record pleases me")
    new = shown.cluster.replace(shown.flow, shop)
    page.shows("nav", f"shop {new.index}")
    page.shows(".ended", "was replaced")
    assert f"shop {shown.flow.index}" not in page.text("nav")
    shown.flow = new
    page.go(f"flow/{failing.index}")
    page.shows("main", "This dataflow has ended", "no record pleases me")


def test_a_thousand_stages_are_laid_out_in_a_second(shown: Shown) -> None:
    page = shown.page
    flow = shown.cluster.install(long_one)
    page.go(f"flow/{flow.index}")
    page.until(lambda: page.run("return document.querySelectorAll('.box').length") == 1000)
    page.until(lambda: again(page) < 1000)
    width = page.run("return import('/static/layout.js').then((layout) => layout.layout([], []).width)")
    assert width == 1, "all stages may be idle, and hidden"
    flow.uninstall()
    page.shows("main", "This dataflow has ended")


def again(page: Page) -> int:
    """How many milliseconds the layout and the drawing take."""
    page.click(".tools input[type=checkbox]")
    page.click(".tools input[type=checkbox]")
    return int(str(page.run("return document.querySelector('.canvas').dataset.layoutMs")))


def test_what_holds_an_epoch_and_the_plan_are_told(shown: Shown) -> None:
    page = shown.page
    page.go(f"flow/{shown.flow.index}/why")
    page.shows("main", f"epoch {shown.flow.epoch - 1} of 'shop' is complete")
    page.run(
        "const field = document.querySelector('input'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('change'))",
        shown.flow.epoch,
    )
    page.shows(".reasons .first", "input 'orders' of 'shop' is open")
    page.go(f"flow/{shown.flow.index}/explain")
    page.shows("pre.plan", "'shop' on 2 workers", "group by customer")


def test_a_query_is_answered_and_a_change_is_refused(shown: Shown) -> None:
    page = shown.page
    page.go("sql")
    page.write(
        "textarea", "select customer, count(*) as n from `shop.orders` group by customer order by customer"
    )
    page.click("main button")
    page.until(lambda: len(page.texts(".rows tbody tr")) == 7)
    page.write("textarea", "create table t (a int)")
    page.click("main button")
    page.shows("pre.verdict", "<prompt>:1:1: CREATE is refused here")
    assert [error for error in page.errors() if "409" not in error] == []


def test_views_leave_nothing_behind(shown: Shown) -> None:
    page = shown.page
    views = ["", "arrangements", "inputs", "outputs", "sql", "help", f"flow/{shown.flow.index}",
             f"flow/{shown.flow.index}/why", f"flow/{shown.flow.index}/output/totals"]  # fmt: skip

    def visited() -> int:
        for view in views * 3:
            page.go(view)
            time.sleep(0.05)
        page.go("help")
        time.sleep(0.3)
        page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        counts = page.driver.execute_cdp_cmd("Memory.getDOMCounters", {})
        return int(counts["nodes"]) + 10 * int(counts["jsEventListeners"])

    visited()
    first = visited()
    page.until(lambda: visited() < first * 1.2 + 200)
    assert [error for error in page.errors() if "409" not in error] == []


def test_memory_stays_flat_however_long_a_page_is_open(shown: Shown) -> None:
    page = shown.page
    page.go("")

    def heap_after(frames: int) -> int:
        """How much memory there is after so many frames more, a quarter of a second apart."""
        page.run(
            "for (let n = 0; n < arguments[0]; n += 1) {"
            "  const frame = JSON.parse(JSON.stringify(naiad.state.frame));"
            "  frame.at += 0.25; frame.flows.forEach((flow) => { flow.epoch += 1; flow.rows += n % 7 });"
            "  naiad.hear(frame) }",
            frames,
        )
        page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        return int(page.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"])

    first = heap_after(1500)  # all that it remembers: five minutes
    assert heap_after(1500) < first * 1.1 + (1 << 19)


def test_a_dataflow_that_was_late_a_moment_ago_is_late(shown: Shown) -> None:
    told = shown.page.run(
        "return arguments[0].map((behind) => {"  # in one script, so that no frame of the server comes between
        "  for (const seconds of behind) {"
        "    const frame = JSON.parse(JSON.stringify(naiad.state.frame));"
        "    frame.at += 0.25; frame.flows[0].behind_seconds = seconds; naiad.hear(frame) }"
        "  return naiad.verdictOf(naiad.state.frame.flows[0]).text })",
        [[0.0] * 20 + [1.4], [0.9] * 8, [0.9] * 20],
    )
    assert told == ["1.4 s behind", "up to 1.4 s behind", "keeps up"], "no words change four times a second"


def test_what_stages_do_counts_if_they_do_it_most_of_the_time(shown: Shown) -> None:
    page = shown.page

    def kinds(*noticed: int) -> object:
        """Return what the page finds after sixteen frames. In those that are named, a stage is busy.

        Ten seconds lie between those of two calls, so that frames of the server in between do not count.
        """
        return page.run(
            "naiad.since = Math.max(naiad.since ?? 0, naiad.state.frame.at) + 10;"
            "for (let n = 0; n < 16; n += 1) {"
            "  const frame = JSON.parse(JSON.stringify(naiad.state.frame));"
            "  frame.at = naiad.since += 0.25; frame.seconds = 0.25;"
            "  for (const flow of frame.flows) flow.findings = arguments[0].includes(n)"
            "    ? [{kind: 'busy', stage: 1, text: 'is busy', advice: ''}] : [];"
            "  naiad.hear(frame) }"
            "return naiad.findingsOf(naiad.state.frame.flows[0]).map((each) => each.kind)",
            list(noticed),
        )

    assert kinds(15) == [] and kinds(2, 5, 9) == []
    assert kinds(*range(0, 16, 3), *range(1, 16, 3)) == ["busy"]
    assert kinds() == []


def test_a_stopped_worker_is_named_until_it_goes_on(shown: Shown) -> None:
    page = shown.page
    page.go("")
    process = process_of(shown, 1)
    os.kill(process, signal.SIGSTOP)
    try:
        page.shows("header", "no answer for", f"kill -CONT {process}")
        page.shows(".status", "these numbers are")
    finally:
        os.kill(process, signal.SIGCONT)
    page.shows("header", "dataflows keep up")


def test_an_input_that_nobody_seals_and_a_reader_that_fell_silent_are_named(shown: Shown) -> None:
    page = shown.page
    page.go("")
    output = shown.flow.output("totals")
    output.changes()
    shown.epoch()
    shown.flow.input("orders").insert([(-1, "x", 1)])
    apart = shown.cluster.install(two_inputs)
    apart.input("fast").advance_to(7)
    page.shows("header", "two_inputs: waits for input 'slow': others are 7 epochs ahead")
    page.shows(
        ".finding.why", "What holds epoch 0? input 'slow' of", "nobody has sealed it", "console_flows.py"
    )
    page.go(f"flow/{apart.index}/why")
    page.shows(".reasons .first", "input 'slow' of")
    apart.uninstall()
    page.go("")
    page.shows(".findings", "1 rows wait at input 'orders': nobody has sealed epoch")
    page.shows(".findings", "a reader of output 'totals' has been silent for", f"process {os.getpid()} on")
    page.go("outputs")
    page.shows(".readers", f"process {os.getpid()} on", "test_browser.py:", "totals", " epochs")
    page.go("")
    output.leave()
    shown.flow.seal(wait=True)
    page.until(lambda: "orders" not in page.text(".findings") and "totals" not in page.text(".findings"))


def test_a_slow_function_is_named_with_its_line(shown: Shown) -> None:
    page = shown.page
    page.go("")
    flow = shown.cluster.install(naps)

    def is_named() -> bool:
        flow.input("records").insert([1])
        flow.seal()
        time.sleep(0.15)
        findings = page.text(".findings")
        is_late = "naps:" in page.text("header") and "naps takes" in findings
        return is_late and "console_flows.py" in page.text(".finding.why")

    page.until(is_named)
    assert "a function waits" in page.text(".findings").lower(), "its process sleeps"
    page.click(".finding[href*=graph]")
    page.shows(".side", "naps", "console_flows.py")
    page.shows("header", "dataflows keep up")
    flow.uninstall()


def test_a_killed_worker_ends_the_cluster_and_the_page_says_so(shown: Shown) -> None:
    process = process_of(shown, 1)
    shown.page.go("help")  # no stage is asked for, which would be refused
    shown.page.shows("main", "what to look at")
    os.kill(process, signal.SIGKILL)
    shown.page.shows("header", "the cluster has ended", "killed by SIGKILL")


def process_of(shown: Shown, worker: int) -> int:
    process = shown.cluster.stats()[worker]["process"]
    assert isinstance(process, int)
    return process
