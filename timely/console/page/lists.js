// What all dataflows have: rows that are kept, inputs, outputs.

import { exact, h, nameOf, seconds, short, siteOf, size } from "./format.js";
import { Grid } from "./grid.js";
import { shapeOf, state } from "./state.js";

export function arrangements() {
  const grid = new Grid([
    { name: "stage", text: (r) => r.name, href: (r) => `#/flow/${r.flow}/graph/${r.stage}`, value: (r) => r.name },
    { name: "dataflow", text: (r) => r.flowName, value: (r) => r.flowName },
    { name: "loop", text: (r) => r.loop, value: (r) => r.loop },
    { name: "rows", number: true, text: (r) => exact(r.rows), value: (r) => r.rows },
    { name: "bytes", number: true, text: (r) => size(r.bytes), value: (r) => r.bytes, exact: (r) => exact(r.bytes),
      bar: (r) => r.share },
    { name: "of a minute ago", number: true, title: "more or fewer bytes than this page has seen then",
      text: (r) => (r.more ? `${r.more > 0 ? "+" : ""}${size(r.more)}` : ""), value: (r) => r.more },
    { name: "written at", text: (r) => siteOf(r.site), exact: (r) => r.site, value: (r) => r.site },
  ], { key: (r) => `${r.flow}/${r.stage}`, sort: "bytes", empty: "no stage keeps rows" });
  return {
    node: h("section", {}, h("div", { class: "card" }, h("h1", {}, "Kept rows"),
      h("p", { class: "dim" }, "Traces and arrangements of all dataflows, all workers together. A stage that grows "
        + "without end needs a window, or removals; click it to see who holds it back."), grid.node)),
    update() {
      const rows = state.frame.flows.flatMap((flow) => (shapeOf(flow.dataflow)?.stages ?? []).map((stage, id) => {
        const past = state.history.get(flow.dataflow)?.stages ?? [];
        const before = past.find((each) => state.frame.at - each.t <= 60);
        return {
          flow: flow.dataflow, flowName: nameOf(flow.name), stage: id, name: stage.name, loop: stage.loop,
          site: stage.site, rows: flow.stages.kept_rows[id], bytes: flow.stages.kept[id],
          more: before ? flow.stages.kept[id] - before.kept[id] : 0,
        };
      })).filter((row) => row.bytes > 0);
      const most = Math.max(1, ...rows.map((row) => row.bytes));
      for (const row of rows) row.share = row.bytes / most;
      grid.update(rows);
    },
  };
}

export function inputs() {
  const grid = new Grid([
    { name: "input", text: (r) => r.name, value: (r) => r.name },
    { name: "dataflow", text: (r) => r.flowName, href: (r) => `#/flow/${r.flow}`, value: (r) => r.flowName },
    { name: "open epoch", number: true, text: (r) => (r.epoch === null ? "closed" : exact(r.epoch)),
      value: (r) => r.epoch },
    { name: "epochs behind others", number: true, title: "of the same dataflow: nothing behind both is complete before",
      text: (r) => exact(r.behind), value: (r) => r.behind, class: (r) => (r.behind > 1 ? "verdict late" : "") },
    { name: "rows waiting", number: true, title: "that have come and wait for a seal", text: (r) => exact(r.waiting),
      value: (r) => r.waiting },
    { name: "their bytes", number: true, title: "that these take, about", text: (r) => size(r.waiting_bytes),
      value: (r) => r.waiting_bytes, exact: (r) => exact(r.waiting_bytes) },
    { name: "rows/s", number: true, title: "that enter", text: (r) => short(r.rows), value: (r) => r.rows },
  ], { key: (r) => `${r.flow}/${r.name}`, sort: "rows waiting", empty: "no dataflow has inputs" });
  const imports = new Grid([
    { name: "import", text: (r) => r.name, value: (r) => r.name },
    { name: "dataflow", text: (r) => r.flowName, href: (r) => `#/flow/${r.flow}`, value: (r) => r.flowName },
    { name: "of dataflow", text: (r) => r.owner, href: (r) => `#/flow/${r.ownerIndex}`, value: (r) => r.owner },
    { name: "has come before", number: true, text: (r) => exact(r.epoch), value: (r) => r.epoch },
  ], { key: (r) => `${r.flow}/${r.name}`, sort: "import", descending: false, empty: "no dataflow reads another one" });
  return {
    node: h("section", {}, h("div", { class: "card" }, h("h1", {}, "Inputs"), grid.node),
      h("div", { class: "card" }, h("h1", {}, "Imports"), imports.node)),
    update() {
      grid.update(state.frame.flows.flatMap((flow) => {
        const stages = shapeOf(flow.dataflow)?.stages ?? [];
        return flow.inputs.map((each) => ({
          ...each, flow: flow.dataflow, flowName: nameOf(flow.name),
          rows: flow.stages.rows[stages.findIndex((stage) => stage.name === `input ${each.name}`)] ?? 0,
        }));
      }));
      imports.update(state.frame.flows.flatMap((flow) => flow.imports.map((each) => ({
        name: each.export, epoch: each.epoch, flow: flow.dataflow, flowName: nameOf(flow.name),
        ownerIndex: each.dataflow, owner: nameOf(shapeOf(each.dataflow)?.name ?? String(each.dataflow)),
      }))));
    },
  };
}

export function outputs() {
  const grid = new Grid([
    { name: "output", text: (r) => r.name, href: (r) => `#/flow/${r.flow}/output/${encodeURIComponent(r.name)}`,
      value: (r) => r.name },
    { name: "dataflow", text: (r) => r.flowName, href: (r) => `#/flow/${r.flow}`, value: (r) => r.flowName },
    { name: "complete before", number: true, text: (r) => (r.complete === null ? "all" : exact(r.complete)),
      value: (r) => r.complete },
    { name: "readers", number: true, text: (r) => String(r.readers.length), value: (r) => r.readers.length },
    { name: "slowest reader behind", number: true, title: "complete epochs that it has not read: workers keep them for it",
      text: (r) => (r.readers.length ? `${exact(r.behind)} epochs` : "–"), value: (r) => r.behind },
    { name: "silent for", number: true, title: "the reader that was heard of longest ago",
      text: (r) => (r.readers.length ? seconds(r.silent) : "–"), value: (r) => r.silent,
      class: (r) => (r.silent > 5 && r.behind > 0 ? "verdict late" : "") },
  ], { key: (r) => `${r.flow}/${r.name}`, sort: "output", descending: false, empty: "no dataflow has outputs" });
  const readers = new Grid([
    { name: "reader", title: "the process of a client, and its host", text: (r) => r.client || r.name, exact: (r) => r.name,
      value: (r) => r.client || r.name },
    { name: "of output", text: (r) => r.output, value: (r) => r.output },
    { name: "has begun at", text: (r) => siteOf(r.site) || "–", exact: (r) => r.site, value: (r) => r.site },
    { name: "behind", number: true, title: "complete epochs that it has not read", text: (r) => `${exact(r.behind)} epochs`,
      value: (r) => r.behind },
    { name: "silent for", number: true, text: (r) => seconds(r.silent), value: (r) => r.silent,
      class: (r) => (r.silent > 5 && r.behind > 0 ? "verdict late" : "") },
    { name: "rows", number: true, title: "that workers keep for it, about", text: (r) => exact(r.rows), value: (r) => r.rows },
    { name: "bytes", number: true, title: "of these; several readers share them", text: (r) => size(r.bytes), value: (r) => r.bytes },
  ], { key: (r) => `${r.flow}/${r.output}/${r.name}`, sort: "bytes", empty: "no program has a position in an output" });
  return {
    node: h("section", {},
      h("div", { class: "card" }, h("h1", {}, "Outputs"),
        h("p", { class: "dim" }, "Click an output to see its rows change."), grid.node),
      h("div", { class: "card readers" }, h("h1", {}, "Who reads them"), readers.node)),
    update() {
      readers.update(state.frame.flows.flatMap((flow) => flow.outputs.flatMap((each) => each.readers.map((reader) => ({
        ...reader, flow: flow.dataflow, output: each.name,
      })))));
      grid.update(state.frame.flows.flatMap((flow) => flow.outputs.map((each) => ({
        ...each, flow: flow.dataflow, flowName: nameOf(flow.name),
        behind: Math.max(0, ...each.readers.map((reader) => reader.behind)),
        silent: Math.max(0, ...each.readers.map((reader) => reader.silent)),
      }))));
    },
  };
}
