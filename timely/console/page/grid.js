// A table whose rows have keys: cells change in place, so that a selection, or a click under way, is not lost.

import { h, setText } from "./format.js";

/**
 * columns: {name, title, number, text(row), exact(row), value(row), bar(row), class(row), href(row)}
 *   value sorts, and stands in data-value; bar is a share from 0 to 1, drawn in the cell.
 */
export class Grid {
  constructor(columns, { key, sort = null, descending = true, click = null, empty = "nothing" }) {
    this.columns = columns;
    this.key = key;
    this.sort = sort;
    this.descending = descending;
    this.click = click;
    this.rows = new Map();
    this.last = [];
    this.heads = columns.map((column) =>
      h("th", {
        scope: "col", class: column.number ? "number" : "", title: column.title ?? "", tabindex: "0",
        onclick: () => this.sortBy(column),
        onkeydown: (event) => { if (event.key === "Enter") this.sortBy(column); },
      }, column.name));
    this.body = h("tbody");
    this.none = h("p", { class: "dim none" }, empty);
    this.node = h("div", { class: "grid" },
      h("table", {}, h("thead", {}, h("tr", {}, this.heads)), this.body), this.none);
    this.mark();
  }

  sortBy(column) {
    if (this.sort === column.name) this.descending = !this.descending;
    else {
      this.sort = column.name;
      this.descending = Boolean(column.number);
    }
    this.mark();
    this.update(this.last);
  }

  mark() {
    this.columns.forEach((column, place) => {
      const sorted = column.name === this.sort;
      this.heads[place].setAttribute("aria-sort", sorted ? (this.descending ? "descending" : "ascending") : "none");
    });
  }

  update(rows) {
    this.last = rows;
    const by = this.columns.find((column) => column.name === this.sort);
    const sorted = [...rows];
    if (by) {
      const of = by.value ?? by.text;
      const sign = this.descending ? -1 : 1;
      sorted.sort((a, b) => sign * compared(of(a), of(b)));
    }
    const seen = new Set();
    let place = this.body.firstElementChild;
    for (const row of sorted) {
      const key = this.key(row);
      seen.add(key);
      let line = this.rows.get(key);
      if (!line) {
        line = this.line();
        this.rows.set(key, line);
      }
      line.row = row;
      this.columns.forEach((column, number) => fillCell(line.cells[number], column, row));
      if (line.node !== place) this.body.insertBefore(line.node, place);
      else place = place.nextElementSibling;
    }
    for (const [key, line] of this.rows) {
      if (!seen.has(key)) {
        line.node.remove();
        this.rows.delete(key);
      }
    }
    this.none.hidden = sorted.length > 0;
  }

  line() {
    const cells = this.columns.map((column) => {
      const text = column.href ? h("a") : h("span");
      const bar = column.bar ? h("i", { class: "bar" }) : null;
      return { cell: h("td", { class: column.number ? "number" : "" }, bar, text), text, bar };
    });
    const line = { cells, row: null };
    line.node = h("tr", this.click ? { class: "clickable", onclick: () => this.click(line.row) } : {},
      cells.map((each) => each.cell));
    return line;
  }
}

function fillCell({ cell, text, bar }, column, row) {
  setText(text, column.text(row));
  if (column.href) text.setAttribute("href", column.href(row));
  if (column.value) cell.dataset.value = String(column.value(row));
  if (column.exact) cell.title = column.exact(row);
  if (column.class) cell.className = `${column.number ? "number " : ""}${column.class(row)}`;
  if (bar) bar.style.width = `${Math.min(100, Math.max(0, 100 * column.bar(row)))}%`;
}

function compared(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : 1;
}
