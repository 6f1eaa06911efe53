// Follows outputs of dataflows. The console's own table uses it, and so does a page of yours, which finds it at
// /static/following.js.

import { begin, listen, state } from "./state.js";

const TOGETHER_MS = 1000;

/**
 * Follow an output; the server sorts and filters, and sends the first rows. Calls onTable with {columns, rows, total,
 * matching, epoch, changes, error} when rows have changed, and with {error} if it is refused. A hidden page hears
 * nothing. Returns what ends it.
 */
export function follow({ dataflow, output, sort = "", descending = false, wanted = "" }, onTable) {
  const query = new URLSearchParams({
    dataflow, output, sort, order: descending ? "descending" : "ascending", wanted,
  });
  let source = null;
  let waiting = null; // the last event that has not been drawn
  let isOver = false;

  function open() {
    source?.close();
    source = null;
    if (document.hidden || isOver) return;
    source = new EventSource(`/table?${query}`);
    source.addEventListener("table", (event) => {
      if (!waiting) requestAnimationFrame(tell);
      waiting = event.data;
    });
    source.addEventListener("refused", (event) => {
      source.close();
      if (!isOver) onTable({ columns: [], rows: [], ...JSON.parse(event.data) });
    });
  }

  function tell() {
    const data = waiting;
    waiting = null;
    if (!isOver) onTable(JSON.parse(data));
  }

  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    isOver = true;
    source?.close();
    document.removeEventListener("visibilitychange", open);
  };
}

/**
 * Follow outputs of the newest dataflow of a name; `outputs` has for each name its sort, descending and wanted. Calls
 * onTables with {dataflow, tables, epoch, error}: tables by name, all of one epoch. If epochs come too quickly for
 * that, the newest tables are given once a second, and epoch is null. Returns what ends it.
 */
export function followTogether(name, outputs, onTables) {
  const names = Object.keys(outputs);
  let dataflow = null;
  let ends = [];
  let tables = {};
  let told = 0;
  let timer = null; // tells tables of several epochs that have come too soon after others

  function hear(output, table) {
    tables[output] = table;
    const errors = names.map((each) => tables[each]?.error).filter(Boolean);
    if (errors.length) {
      forget();
      return onTables({ dataflow, tables: null, epoch: null, error: errors[0] });
    }
    if (names.some((each) => !tables[each])) return undefined;
    if (new Set(names.map((each) => tables[each].epoch)).size === 1) return tell(table.epoch);
    timer ??= setTimeout(() => tell(null), Math.max(0, told + TOGETHER_MS - performance.now()));
    return undefined;
  }

  function forget() {
    clearTimeout(timer);
    timer = null;
  }

  function tell(epoch) {
    forget();
    told = performance.now();
    onTables({ dataflow, tables: { ...tables }, epoch, error: "" });
  }

  function find() {
    const found = Object.entries(state.shape.flows)
      .filter(([, flow]) => flow.name === name || flow.name.endsWith(`:${name}`))
      .map(([index]) => Number(index));
    const newest = found.length ? Math.max(...found) : null;
    if (newest === dataflow) return;
    end();
    dataflow = newest;
    if (newest === null) {
      onTables({ dataflow, tables: null, epoch: null, error: `no dataflow ${name} is there any more` });
      return;
    }
    ends = names.map((output) => follow({ dataflow, output, ...outputs[output] }, (table) => hear(output, table)));
  }

  function end() {
    for (const each of ends) each();
    ends = [];
    tables = {};
    forget();
    told = performance.now();
  }

  const stop = listen((what) => { if (what === "shape") find(); });
  begin();
  find();
  return () => { stop(); end(); };
}
