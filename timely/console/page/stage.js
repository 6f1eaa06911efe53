// What stands beside the graph for a chosen stage: each worker, the line, arrangements by part, and readers.

import { ask } from "./asking.js";
import { exact, h, percent, put, seconds, setText, short, size } from "./format.js";

const EVERY_MS = 1000;
const PARTS = ["run", "head", "tail", "merge", "pinned"];
const PARTS_HELP = {
  run: "sorted and merged", head: "newest rows, in order", tail: "newest rows, as they came",
  merge: "merges under way", pinned: "kept for postponed work",
};

export function stagePanel(dataflow, id, stage, close) {
  const figures = h("dl", {});
  const workers = h("div", { class: "bars" });
  const told = h("div", {});
  let asking = false;

  async function load() {
    if (asking || document.hidden) return;
    asking = true;
    const all = await ask(`/stage?dataflow=${dataflow}&stage=${id}`);
    asking = false;
    if (Array.isArray(all)) draw(told, all);
    else put(told, h("p", { class: "dim" }, all?.error ?? "the workers tell nothing more of it"));
  }
  const timer = setInterval(load, EVERY_MS);
  load();

  return {
    node: h("div", {},
      h("button", { type: "button", class: "close", title: "close", onclick: close }, "×"),
      h("h2", {}, stage.name),
      h("p", { class: "dim" }, stage.site, stage.loop ? h("br") : null, stage.loop ? `in loop ${stage.loop}` : null),
      figures, h("h3", {}, "busy, by worker"), workers, told),
    update(flow) {
      const at = flow.stages;
      put(figures, ...[
        ["busy", percent(at.busy[id]), `all workers together: ${percent(at.busy_by.length)} is the most`], ["skew", at.skew[id].toFixed(2), `1: all work the same; ${at.busy_by.length}: one does everything`],
        ["rows/s", short(at.rows[id]), "that come to it"], ["waiting", `${exact(at.waiting[id])} rows`, at.waiting[id] ? `about ${size(at.waiting_bytes[id])}` : ""],
        ["keeps", `${exact(at.kept_rows[id])} rows`, size(at.kept[id])],
      ].flatMap(([name, value, more]) => [h("dt", {}, name), h("dd", {}, value, " ", h("span", { class: "dim" }, more))]));
      put(workers, at.busy_by.map((worker, number) => h("div", { class: "barline" },
        h("span", {}, String(number)), h("i", { class: "track" }, bar(worker[id])), h("span", {}, percent(worker[id])))));
    },
    end() {
      clearInterval(timer);
    },
  };
}

function bar(share) {
  const node = h("i", { class: "fillbar" });
  node.style.width = `${Math.min(100, share * 100)}%`;
  return node;
}

function draw(node, all) {
  const lines = [h("h3", {}, "by worker, since the start"), simpleTable(
    ["worker", "busy", "waiting", "their bytes", "rows kept", "bytes"],
    all.map(({ worker, told }) => [String(worker), seconds(told.busy_seconds),
      exact(told.rows_waiting), size(told.bytes_waiting), exact(rowsOf(told)), size(bytesOf(told))]))];
  const frontiers = all.map(({ worker, told }) => `${worker}: ${told.frontier === null ? "none" : timesOf([told.frontier])}`);
  lines.push(h("p", { class: "dim" }, `the first time at which rows may still come, by worker: ${frontiers.join(" · ")}`));
  const arrangements = all.flatMap(({ worker, told }) =>
    (told.arrangements ?? []).map((each) => ({ worker, ...each })));
  if (arrangements.length) {
    lines.push(h("h3", {}, "arrangements, by part"), arrangements.map(partsOf),
      h("p", { class: "parts dim" }, PARTS.map((part) =>
        h("span", { title: PARTS_HELP[part] }, h("i", { class: `part ${part}` }), part))));
    const readers = arrangements.flatMap(({ worker, readers: them }) => them.map((each) => ({ worker, ...each })));
    lines.push(h("h3", {}, "its readers"), simpleTable(["worker", "reader", "may ask about", "lag", "holds back"],
      readers.map((each) => [String(each.worker), each.name, timesOf(each.hold),
        each.lag === null ? "–" : exact(each.lag), isHeld(each) ? "yes" : ""])));
  }
  put(node, lines);
}

/** Times as texts: the epoch, and the iterations of the loops around. */
function timesOf(times) {
  return (times ?? []).map((time) => [time].flat().join(", ")).join(" · ") || "–";
}

function isHeld(reader) {
  return Array.isArray(reader.holds_back) ? reader.holds_back.length > 0 : Boolean(reader.holds_back);
}

function partsOf(arrangement) {
  const total = Math.max(1, arrangement.bytes);
  const line = h("i", { class: "track" }, PARTS.map((part) => {
    const bytes = arrangement[`${part}_bytes`] ?? 0;
    const node = h("i", { class: `part ${part}`, title: `${part}: ${size(bytes)} (${PARTS_HELP[part]})` });
    node.style.width = `${(100 * bytes) / total}%`;
    return node;
  }));
  return h("div", {}, h("p", { class: "arrangement" }, `worker ${arrangement.worker}: ${arrangement.name} — `
    + `${exact(arrangement.rows)} rows, ${size(arrangement.bytes)}`), line);
}

function rowsOf(told) {
  return (told.trace_rows ?? 0) + (told.arrangements ?? []).reduce((total, each) => total + each.rows, 0);
}

function bytesOf(told) {
  return (told.trace_bytes ?? 0) + (told.arrangements ?? []).reduce((total, each) => total + each.bytes, 0);
}

export function simpleTable(heads, rows) {
  return h("div", { class: "grid" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", {}, head)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}
