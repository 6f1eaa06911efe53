// One dataflow: its graph, what holds it, and the plan that runs.

import { exact, h, nameOf, put, seconds, setText, short, size } from "./format.js";
import { flowOf, shapeOf, state, verdictOf, whyPath } from "./state.js";
import { drawFindings } from "./overview.js";
import { graphPanel } from "./graph.js";
import { ask } from "./asking.js";

export function flowView(number, tab = "graph", stage = undefined) {
  const index = Number(number);
  const head = h("div", { class: "flowhead" });
  const title = h("h1", {});
  const badge = h("span", { class: "verdict" });
  const numbers = h("span", { class: "dim" });
  const tabs = h("div", { class: "tabs", role: "tablist" }, ["graph", "why", "explain"].map((each) =>
    h("a", { href: `#/flow/${index}/${each}`, "aria-current": each === tab ? "page" : null },
      { graph: "Graph", why: "What holds it", explain: "Explain" }[each])));
  const outputs = h("div", { class: "dim outputs" });
  const findings = h("div", { class: "findings" });
  const gone = h("p", { class: "verdict stuck", hidden: true });
  put(head, title, badge, numbers);
  const panel = { graph: graphPanel, why: whyPanel, explain: explainPanel }[tab](index,
    stage === undefined ? null : Number(stage));
  let outputsDrawn = "";

  return {
    node: h("section", { class: `flow ${tab}` }, head, gone, findings, h("div", { class: "row" }, tabs, outputs), panel.node),
    update(what) {
      const flow = flowOf(index);
      const shape = shapeOf(index);
      gone.hidden = Boolean(flow);
      if (!flow || !shape) {
        const end = state.shape.ended.find((each) => each.dataflow === index);
        setText(gone, end ? `This dataflow has ended. ${end.message}` : "There is no such dataflow (any more).");
        return;
      }
      setText(title, nameOf(flow.name));
      const verdict = verdictOf(flow);
      badge.className = `verdict ${verdict.kind}`;
      setText(badge, verdict.text);
      setText(numbers, `epoch ${exact(flow.epoch) || "–"} · ${exact(flow.behind_epochs)} behind by `
        + `${seconds(flow.behind_seconds)} · ${short(flow.rows)} rows/s · keeps ${size(flow.kept_bytes)}`);
      drawFindings(findings, [flow]);
      const names = flow.outputs.map((each) => each.name);
      if (names.join("\n") !== outputsDrawn) {
        outputsDrawn = names.join("\n");
        put(outputs, "outputs: ", names.map((name) =>
          h("a", { href: `#/flow/${index}/output/${encodeURIComponent(name)}` }, name)));
      }
      panel.update(what, flow, shape);
    },
    end() {
      panel.end?.();
    },
  };
}

function whyPanel(index) {
  const epoch = h("input", { type: "number", min: "0", placeholder: "last sealed", "aria-label": "epoch" });
  const list = h("ol", { class: "reasons" });
  const text = h("p", {});
  const again = h("button", { type: "button", onclick: () => load() }, "Ask again");
  let asking = false;
  let timer = 0;
  async function load() {
    if (asking) return;
    asking = true;
    const told = await ask(whyPath(flowOf(index) ?? { dataflow: index, inputs: [] }, epoch.value));
    asking = false;
    if (told.epoch !== undefined) epoch.placeholder = String(told.epoch);
    setText(text, told.error ?? told.text.split("\n")[0]);
    put(list, (told.reasons ?? []).map((reason) =>
      h("li", { class: reason.is_first ? "first" : "dim" }, reason.text,
        reason.is_first ? null : " (may only wait for those above)")));
  }
  epoch.addEventListener("change", load);
  timer = setInterval(() => { if (!document.hidden && document.activeElement !== epoch) load(); }, 2000);
  load();
  return {
    node: h("div", { class: "card" }, h("p", { class: "row" }, "What holds epoch ", epoch, again), text, list,
      h("p", { class: "dim" }, "The likeliest cause comes first. Each worker answers, also in the middle of a long call; "
        + "asked every two seconds while this is open.")),
    update() {},
    end() { clearInterval(timer); },
  };
}

function explainPanel(index) {
  const text = h("pre", { class: "plan" }, "asking the workers …");
  async function load() {
    const told = await ask(`/explain?dataflow=${index}`);
    const parts = [];
    if (told.error) parts.push(told.error);
    if (told.note) parts.push(told.note);
    if (told.plan) parts.push(told.plan);
    if (told.text) parts.push(`${told.note ? "== as it runs ==\n" : ""}${told.text}`);
    setText(text, parts.join("\n\n"));
  }
  load();
  return {
    node: h("div", { class: "card" },
      h("p", { class: "row" }, h("button", { type: "button", onclick: load }, "Ask again"),
        h("span", { class: "dim" }, "The stages that run, with totals since the dataflow was installed.")), text),
    update() {},
  };
}
