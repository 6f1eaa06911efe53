// An output as a live table: the server sorts and filters, and sends the first rows.

import { follow } from "./following.js";
import { exact, h, nameOf, setText, short } from "./format.js";
import { Rows } from "./rows.js";
import { shapeOf } from "./state.js";

export function outputView(number, encoded) {
  const name = decoded(encoded);
  const asked = { sort: "", descending: false, wanted: "" };
  const title = h("h1", {}, name);
  const counts = h("span", { class: "dim", id: "counts" });
  const error = h("p", { class: "verdict stuck", hidden: true });
  const filter = h("input", { type: "search", placeholder: "rows that have this text", "aria-label": "filter" });
  const rows = new Rows((column) => {
    asked.descending = asked.sort === column ? !asked.descending : false;
    asked.sort = column;
    open();
  });
  let leave = null;
  let timer = 0;

  function open() {
    leave?.();
    leave = follow({ dataflow: number, output: name, ...asked }, draw);
  }

  function draw(told) {
    show(told.error);
    if (told.columns.length) rows.update(told, asked.sort, asked.descending);
    if (told.epoch === undefined) return; // it is refused
    const some = told.matching > told.rows.length ? `the first ${exact(told.rows.length)} of ` : "";
    const of = told.matching < told.total ? ` that match, of ${exact(told.total)}` : "";
    setText(counts, `${some}${exact(told.matching)} rows${of} · ${short(told.changes)} changes/s · `
      + (told.epoch < 0 ? "no epoch is complete" : `as of epoch ${exact(told.epoch)}`));
    counts.dataset.epoch = String(told.epoch);
    counts.dataset.total = String(told.total);
  }

  function show(text) {
    error.hidden = !text;
    setText(error, text ?? "");
  }

  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { asked.wanted = filter.value; open(); }, 200);
  });
  open();

  return {
    node: h("section", {}, h("div", { class: "card" },
      h("div", { class: "flowhead" }, title, h("a", { href: `#/flow/${number}`, class: "dim" },
        `output of ${nameOf(shapeOf(Number(number))?.name ?? number)}`), counts),
      h("p", { class: "row" }, filter, h("span", { class: "dim" }, "click a column to sort by it")), error, rows.node)),
    update() {},
    end() {
      clearTimeout(timer); // it would open the stream again
      leave();
    },
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody has written the address by hand
  }
}
