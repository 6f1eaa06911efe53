// The first view: does it keep up, and if not, what to look at.

import { chart } from "./chart.js";
import { exact, h, nameOf, percent, put, seconds, setText, short, siteOf, size } from "./format.js";
import { Grid } from "./grid.js";
import { findingsOf, isLate, shapeOf, state, verdictOf } from "./state.js";

export function overview() {
  const findings = h("div", { class: "findings" });
  const flows = new Grid([
    { name: "dataflow", text: (f) => `${nameOf(f.name)}`, href: (f) => `#/flow/${f.dataflow}`, exact: (f) => f.name,
      value: (f) => nameOf(f.name) },
    { name: "state", text: (f) => verdictOf(f).text, class: (f) => `verdict ${verdictOf(f).kind}`,
      value: (f) => verdictOf(f).kind },
    { name: "epoch", number: true, title: "the first that is open at an input", text: (f) => exact(f.epoch) || "–",
      value: (f) => f.epoch },
    { name: "complete before", number: true, title: "everything before this epoch is complete at all outputs",
      text: (f) => (f.complete_before === null ? "all" : exact(f.complete_before)), value: (f) => f.complete_before },
    { name: "epochs behind", number: true, title: "sealed epochs that are not complete",
      text: (f) => exact(f.behind_epochs), value: (f) => f.behind_epochs },
    { name: "behind by", number: true, title: "how long ago the first of them was sealed",
      text: (f) => seconds(f.behind_seconds), value: (f) => f.behind_seconds },
    { name: "rows/s", number: true, title: "rows that enter by inputs", text: (f) => short(f.rows),
      value: (f) => f.rows },
    { name: "busy", number: true, title: "time of all workers together: two workers have 200 %",
      text: (f) => percent(f.busy), value: (f) => f.busy,
      bar: (f) => f.busy / Math.max(1, state.frame.workers.length) },
    { name: "keeps", number: true, title: "bytes of rows that its stages keep", text: (f) => size(f.kept_bytes),
      value: (f) => f.kept_bytes, exact: (f) => `${exact(f.kept_bytes)} bytes` },
    { name: "epochs take", number: true, title: "from sealed to complete: half of the epochs, and 99 % of them, since this page asks; noted four times a second",
      text: (f) => (f.latency.length ? f.latency.map(seconds).join(" · ") : "–"), value: (f) => f.latency[0] ?? 0 },
  ], { key: (f) => f.dataflow, sort: "behind by", empty: "no dataflow is installed" });
  const workers = new Grid([
    { name: "worker", text: (w) => String(w.worker), value: (w) => w.worker },
    { name: "process", number: true, text: (w) => String(w.process), value: (w) => w.process },
    { name: "cpu", number: true, title: "of its process: more than 100 % if several threads work",
      text: (w) => percent(w.cpu), value: (w) => w.cpu, bar: (w) => w.cpu },
    { name: "memory", number: true, text: (w) => size(w.resident_bytes), value: (w) => w.resident_bytes },
    { name: "messages/s", number: true, title: "to other workers", text: (w) => short(w.messages),
      value: (w) => w.messages },
    { name: "coming", number: true, title: "rows on their way from other workers, not yet received",
      text: (w) => short(w.coming_rows), exact: (w) => exact(w.coming_rows), value: (w) => w.coming_rows },
    { name: "on rings", number: true, title: "bytes in the memory that workers of one host share, for this one",
      text: (w) => size(w.ring_bytes), value: (w) => w.ring_bytes },
  ], { key: (w) => w.worker, sort: "worker", descending: false });
  const lag = chart("seconds behind", (past) => past.lag, seconds);
  const rows = chart("rows that enter, each second", (past) => past.rows, short);
  const ended = h("div", { class: "ended" });
  let endedDrawn = "";

  return {
    node: h("section", {},
      findings,
      h("div", { class: "card" }, h("h1", {}, "Dataflows"), flows.node),
      h("div", { class: "charts" }, lag.node, rows.node),
      h("div", { class: "card" }, h("h1", {}, "Workers"), workers.node),
      ended),
    update() {
      flows.update(state.frame.flows);
      workers.update(state.frame.workers);
      drawFindings(findings, state.frame.flows);
      lag.update();
      rows.update();
      const all = state.shape.ended.filter((each) => !shapeOf(each.dataflow)).slice(-10).reverse();
      const key = JSON.stringify(all);
      if (key !== endedDrawn) {
        endedDrawn = key;
        put(ended, all.length ? h("div", { class: "card" }, h("h1", {}, "Ended"), all.map(endedNode)) : null);
      }
    },
    end() {
      lag.end();
      rows.end();
    },
  };
}

function endedNode(each) {
  const words = { error: "ended by an error", replaced: "was replaced", uninstalled: "was uninstalled" }[each.kind];
  const when = each.at ? ` at ${new Date(each.at * 1000).toLocaleTimeString()}` : "";
  return h("details", { class: `end ${each.kind}`, open: each.kind === "error" },
    h("summary", {}, `${each.name ? nameOf(each.name) : "dataflow"} (${each.dataflow}) ${words}${when}`),
    h("pre", {}, each.message));
}

const RANKS = ["uneven", "busy", "input", "waiting", "why", "reader", "grows"];

/** Draw what to look at; lines stay the same nodes as long as they say the same. */
export function drawFindings(node, flows) {
  const lines = [];
  for (const flow of flows) {
    const late = isLate(flow);
    const cause = state.causes.get(flow.dataflow);
    for (const each of findingsOf(flow)) lines.push({ flow, late, ...each });
    if (late) {
      lines.push({
        flow, late, kind: "why", stage: -1, advice: "",
        text: `What holds epoch ${exact(cause?.epoch ?? flow.complete_before)}? ${cause?.text ?? ""}`,
      });
    }
  }
  // A stage that is always busy holds up other dataflows on its worker, too: it comes before those that are late.
  lines.sort((a, b) => RANKS.indexOf(a.kind) - RANKS.indexOf(b.kind) || b.late - a.late);
  const shown = lines.slice(0, 8);
  const keys = shown.map((each) => `${each.flow.dataflow}/${each.kind}/${each.stage}/${each.advice}`);
  const there = [...node.children];
  if (keys.length === there.length && keys.every((key, place) => there[place].dataset.key === key)) {
    shown.forEach((each, place) => setText(there[place].querySelector(".text"), each.text));
    return;
  }
  put(node, shown.map((each, place) => {
    const path = each.kind === "why" ? `flow/${each.flow.dataflow}/why`
      : each.kind === "input" ? "inputs" : each.kind === "reader" ? "outputs"
        : `flow/${each.flow.dataflow}/graph/${each.stage}`;
    return h("a", { class: `finding ${each.late ? "late" : ""} ${each.kind}`, href: `#/${path}`, "data-key": keys[place] },
      h("div", {}, h("b", {}, nameOf(each.flow.name)), " ", h("span", { class: "text" }, each.text), " ",
        h("span", { class: "dim" }, siteOf(shapeOf(each.flow.dataflow)?.stages[each.stage]?.site ?? ""))),
      each.advice ? h("div", { class: "dim" }, each.advice) : null);
  }));
}
