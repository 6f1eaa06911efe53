// A table of rows of a cluster. What has changed since the last time is marked for a moment.

import { h, put, setText } from "./format.js";

const MARKED_MS = 900;

/** sort(name) is called for a click on a column; null: rows have their order. */
export class Rows {
  constructor(sort = null) {
    this.sort = sort;
    this.node = h("div", { class: "grid rows" });
    this.columns = "";
    this.lines = [];
    this.before = null;
  }

  update({ columns, rows }, by = "", descending = false) {
    const key = JSON.stringify([columns, by, descending]);
    if (key !== this.columns) {
      this.columns = key;
      this.lines = [];
      this.before = null;
      this.body = h("tbody");
      put(this.node, h("table", {}, h("thead", {}, h("tr", {}, columns.map((column) => h("th", {
        scope: "col", class: column.is_number ? "number" : "", title: column.type,
        "aria-sort": column.name === by ? (descending ? "descending" : "ascending") : "none",
        onclick: this.sort ? () => this.sort(column.name) : null,
      }, column.name)))), this.body));
    }
    while (this.lines.length < rows.length) {
      const cells = columns.map((column) => h("td", { class: column.is_number ? "number" : "" }));
      const line = { node: h("tr", {}, cells), cells };
      this.lines.push(line);
      this.body.append(line.node);
    }
    while (this.lines.length > rows.length) this.lines.pop().node.remove();
    const before = this.before && known(this.before.rows, rows, this.before.width);
    const now = Date.now();
    rows.forEach((row, place) => {
      const { cells } = this.lines[place];
      const old = before?.(row);
      row.forEach((text, number) => {
        const cell = cells[number];
        setText(cell, text ?? "null");
        cell.classList.toggle("null", text === null);
        if (before && (!old || old[number] !== text)) mark(cell, now);
      });
    });
    this.before = { rows, width: keyWidth(rows) };
  }
}

/** How many first columns tell the rows apart: the key of a table, most often. */
function keyWidth(rows) {
  const wide = rows[0]?.length ?? 0;
  for (let width = 1; width < wide; width += 1) {
    if (new Set(rows.map((row) => JSON.stringify(row.slice(0, width)))).size === rows.length) return width;
  }
  return wide;
}

/** A function that finds the row of before that had the same key. */
function known(before, rows, width) {
  const by = new Map(before.map((row) => [JSON.stringify(row.slice(0, width)), row]));
  return (row) => by.get(JSON.stringify(row.slice(0, width)));
}

function mark(cell, now) {
  cell.classList.add("changed");
  cell.changed = now;
  setTimeout(() => { if (cell.changed === now) cell.classList.remove("changed"); }, MARKED_MS);
}
