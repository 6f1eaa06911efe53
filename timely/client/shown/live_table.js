// A table that shows the last frame of its model; see `LiveRows.frame` for what a frame holds.
// Names and values come from users: they only become the text of nodes, never markup.

function made(kind, name, text) {
  const node = document.createElement(kind);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

function headOf(frame, sort) {
  const [column, descending] = frame.order;
  const row = made("tr");
  for (const [name, kind, isNumber] of frame.columns) {
    const cell = made("th", isNumber ? "naiad-number" : "");
    const arrow = name === column ? (descending ? " ▼" : " ▲") : "";
    const button = made("button", "", name + arrow);
    button.title = kind;
    button.addEventListener("click", () => sort(name, name === column && !descending));
    cell.setAttribute("aria-sort", arrow ? (descending ? "descending" : "ascending") : "none");
    cell.append(button);
    row.append(cell);
  }
  return row;
}

function mark(cell) {
  cell.classList.remove("naiad-changed");
  void cell.offsetWidth; // starts the animation again
  cell.classList.add("naiad-changed");
}

// Rows and cells that are there are used again: of a frame that changes little, little is drawn.
function drawBody(body, frame) {
  frame.rows.forEach((texts, place) => {
    const row = body.rows[place] ?? body.insertRow();
    while (row.cells.length > texts.length) row.deleteCell(-1);
    texts.forEach((text, at) => {
      const cell = row.cells[at] ?? row.insertCell();
      if (cell.textContent !== text) cell.textContent = text;
      const name = frame.columns[at][2] ? "naiad-number" : "";
      if (cell.className !== name) cell.className = name;
    });
  });
  while (body.rows.length > frame.rows.length) body.deleteRow(-1);
  for (const [place, at] of frame.marks) mark(body.rows[place].cells[at]);
}

function below(frame) {
  const parts = [`${frame.total.toLocaleString("en")} row${frame.total === 1 ? "" : "s"}`];
  const left = frame.total - frame.rows.length;
  if (left > 0) parts.push(`${left.toLocaleString("en")} not shown`);
  if (frame.epoch >= 0) parts.push(`epoch ${frame.epoch}`);
  if (frame.note) parts.push(frame.note);
  return parts.join(", ");
}

function render({ model, el }) {
  const table = made("table");
  const head = table.createTHead();
  const body = table.createTBody();
  const note = made("div");
  const error = made("div", "naiad-error");
  const box = made("div", "naiad-live");
  box.append(table, note, error);
  el.append(box);
  let drawn = -1;
  let asked = 0;

  function sort(column, descending) {
    model.set("order", [column, descending]);
    model.save_changes();
  }

  function draw() {
    asked = 0;
    const frame = model.get("frame");
    if (!frame || !frame.columns || frame.number === drawn) return;
    drawn = frame.number;
    const focused = head.contains(document.activeElement)
      ? [...head.querySelectorAll("button")].indexOf(document.activeElement)
      : -1;
    head.replaceChildren(headOf(frame, sort));
    if (focused >= 0) head.querySelectorAll("button")[focused]?.focus();
    drawBody(body, frame);
    note.textContent = below(frame);
    error.textContent = frame.error;
  }

  // A page that is not visible draws nothing, and of several frames only the last one.
  function ask() {
    if (!asked) asked = requestAnimationFrame(draw);
  }

  model.on("change:frame", ask);
  ask();
  return () => {
    model.off("change:frame", ask);
    cancelAnimationFrame(asked);
  };
}

export default { render };
