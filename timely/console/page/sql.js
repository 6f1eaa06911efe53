// A prompt that reads: SELECT, EXPLAIN and SHOW.

import { ask } from "./asking.js";
import { exact, h, seconds, setText } from "./format.js";
import { Rows } from "./rows.js";

let text = "show tables";

export function sqlView() {
  const area = h("textarea", { rows: "6", spellcheck: "false", "aria-label": "query", value: text });
  const run = h("button", { type: "button", onclick: go }, "Run");
  const told = h("span", { class: "dim" });
  const error = h("pre", { class: "verdict stuck", hidden: true });
  const rows = new Rows();
  let running = false;

  async function go() {
    if (running) return;
    running = true;
    run.disabled = true;
    text = area.value;
    setText(told, "running …");
    const began = performance.now();
    const answer = await ask("/query", {
      method: "POST", headers: { "content-type": "application/sql" }, body: text,
    });
    running = false;
    run.disabled = false;
    error.hidden = !answer.error;
    setText(error, answer.error ?? "");
    if (answer.error) {
      setText(told, "");
      return;
    }
    const some = answer.total > answer.rows.length ? `, the first ${exact(answer.rows.length)} of them` : "";
    const epoch = answer.epoch === null ? "" : `as of epoch ${exact(answer.epoch)}, `;
    setText(told, `${answer.status}: ${exact(answer.total)} rows${some}, ${epoch}${seconds((performance.now() - began) / 1000)}`);
    rows.update(answer);
  }

  area.addEventListener("input", () => { text = area.value; });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go();
  });
  return {
    node: h("section", {}, h("div", { class: "card" }, h("h1", {}, "SQL"),
      h("p", { class: "dim" }, "SELECT, EXPLAIN and SHOW. A query builds a dataflow for its answer, which ends with it: it "
        + "reads tables, views and exports of other dataflows, and seals none of them. Ctrl-Enter runs it."),
      area, h("p", { class: "row" }, run, told), error, rows.node)),
    update() {},
  };
}
