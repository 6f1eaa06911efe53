// The graph of a dataflow: stages as boxes, coloured by what matters, and edges by the rows that go there.

import { clipped, exact, h, percent, put, s, setText, short, siteOf, size } from "./format.js";
import { BOX, layout } from "./layout.js";
import { stagePanel } from "./stage.js";
import { state } from "./state.js";

const NAME_FONT = '600 12px system-ui, "Segoe UI", Roboto, sans-serif'; // that of .canvas .name
const LABEL = { width: 54, height: 16 };
const LOG_SPAN = 4; // powers of ten between the thinnest edge and the widest

/** How each stage is coloured: value, text, and a share from 0 to 1. */
const COLOURS = {
  busy: {
    title: "busy", help: "share of the time of the worker that works most in it",
    value: (flow, id) => Math.max(0, ...flow.stages.busy_by.map((worker) => worker[id] ?? 0)),
    text: percent, share: (value) => value,
  },
  rows: {
    title: "rows/s", help: "rows that come to it, each second",
    value: (flow, id) => flow.stages.rows[id], text: (value) => `${short(value)}/s`, share: rooted,
  },
  bytes: {
    title: "bytes", help: "of rows that it keeps",
    value: (flow, id) => flow.stages.kept[id], text: size, share: rooted,
  },
  skew: {
    title: "skew", help: "the worker that works longest, beside the mean of all; 1: all work the same",
    value: (flow, id) => (flow.stages.busy[id] >= 0.001 ? flow.stages.skew[id] : 1),
    text: (value) => value.toFixed(2),
    share: (value) => (state.frame.workers.length > 1 ? (value - 1) / (state.frame.workers.length - 1) : 0),
  },
  waiting: {
    title: "waiting", help: "rows in front of it",
    value: (flow, id) => flow.stages.waiting[id], text: short, share: rooted,
  },
};

function rooted(value, most) {
  return most > 0 ? Math.sqrt(value / most) : 0;
}

function logarithmic(value, most) {
  return value > 0 && most > 0 ? Math.max(0, 1 + Math.log10(value / most) / LOG_SPAN) : 0;
}

let colour = "busy";
let hidesIdle = false;

export function graphPanel(index, stage) {
  const canvas = s("svg", { class: "canvas", role: "img", "aria-label": "the graph of the dataflow" });
  const world = s("g");
  canvas.append(arrowHead(), world);
  const side = h("aside", { class: "side", hidden: true });
  const legend = h("span", { class: "dim" });
  const buttons = Object.entries(COLOURS).map(([name, each]) =>
    h("button", { type: "button", "data-colour": name, title: each.help, onclick: () => { colour = name; redraw(); } },
      each.title));
  const idle = h("input", { type: "checkbox", onchange: () => { hidesIdle = idle.checked; lay(); } });
  idle.checked = hidesIdle;
  const camera = { x: 0, y: 0, scale: 1, isOwn: false };
  const rows = { flow: null, shape: null, drawn: "", busyIds: new Set(), boxes: new Map(), edges: [], size: null };
  let chosen = stage;
  let detail = null;

  const node = h("div", { class: "graphpanel" },
    h("div", { class: "row tools" }, h("span", {}, "colour by "), h("span", { class: "segment" }, buttons), legend,
      h("label", {}, idle, " hide what is idle"), h("span", { class: "segment" },
        h("button", { type: "button", title: "larger", onclick: () => zoom(1.3) }, "+"),
        h("button", { type: "button", title: "smaller", onclick: () => zoom(1 / 1.3) }, "−"),
        h("button", { type: "button", onclick: () => { camera.isOwn = false; fit(); } }, "Fit"))),
    h("div", { class: "graphrow" }, canvas, side));

  /** Lay out anew what there is to see. */
  function lay() {
    const { flow, shape } = rows;
    const ids = shape.stages.map((_, id) => id).filter((id) => !hidesIdle || rows.busyIds.has(id));
    const visible = new Set(ids);
    const edges = merged(shape.edges).filter((each) => visible.has(each.from) && visible.has(each.to));
    const began = performance.now();
    const places = layout(ids.map((id) => ({ id, loop: shape.stages[id].loop })),
      edges.map((each) => [each.from, each.to]));
    draw(shape, ids, edges, places);
    canvas.dataset.layoutMs = String(Math.round(performance.now() - began));
    rows.size = places;
    if (!camera.isOwn) fit();
    repaint(flow);
  }

  function draw(shape, ids, edges, places) {
    const loops = places.loops.map((loop) => s("g", { class: "loop" },
      s("rect", { x: loop.x - loop.width / 2, y: loop.y - loop.height / 2, width: loop.width, height: loop.height, rx: 14 }),
      s("text", { x: loop.x - loop.width / 2 + 12, y: loop.y - loop.height / 2 + 18 }, `loop ${loop.name}`)));
    rows.edges = edges.map((edge, place) => {
      const points = places.paths[place];
      const at = labelPlace(points, places.boxes);
      const path = s("path", { d: curve(points), class: "edge", "marker-end": "url(#arrow)" });
      const label = s("text", { x: at.x, y: at.y + 4, class: "rate", "text-anchor": at.anchor });
      const title = s("title");
      path.append(title);
      return { ...edge, path, label, title, node: s("g", {}, path, label) };
    });
    rows.boxes = new Map(ids.map((id) => [id, box(id, shape.stages[id], places.boxes.get(id))]));
    put(world, loops, rows.edges.map((each) => each.node), [...rows.boxes.values()].map((each) => each.node));
  }

  function box(id, stage, { x, y }) {
    const metric = s("text", { x: 10, y: 42, class: "metric" });
    const site = s("text", { x: BOX.width - 10, y: 42, class: "site", "text-anchor": "end" },
      stage.site.includes(":") ? clipped(siteOf(stage.site), 18) : "");
    const title = s("title");
    const bars = s("g");
    const back = s("rect", { width: BOX.width, height: BOX.height, rx: 8, class: "back" });
    const heat = s("rect", { width: BOX.width, height: BOX.height, rx: 8, class: "heat" });
    const group = s("g", {
      class: "box", transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})`, "data-stage": id, tabindex: "0",
      onclick: () => choose(id),
      onkeydown: (event) => { if (event.key === "Enter") choose(id); },
    }, title, back, heat, s("text", { x: 10, y: 20, class: "name" }, fitted(stage.name, BOX.width - 20)), metric, site, bars);
    return { node: group, heat, metric, title, stage };
  }

  /** New numbers in the same boxes. */
  function repaint(flow) {
    const by = COLOURS[colour];
    const values = new Map([...rows.boxes.keys()].map((id) => [id, by.value(flow, id)]));
    const most = Math.max(0, ...values.values());
    for (const [id, each] of rows.boxes) {
      const value = values.get(id);
      const share = Math.min(1, Math.max(0, by.share(value, most)));
      each.heat.style.opacity = share.toFixed(2);
      each.node.classList.toggle("chosen", id === chosen);
      each.node.classList.toggle("hot", share > 0.7);
      setText(each.metric, by.text(value));
      setText(each.title, `${each.stage.name}\n${each.stage.site}\nstage ${id}`);
    }
    const rates = rows.edges.map((edge) => sum(edge.places.map((place) => flow.edges[place]?.[0] ?? 0)));
    const top = Math.max(0, ...rates);
    rows.edges.forEach((edge, place) => {
      const rate = rates[place];
      edge.path.style.strokeWidth = (1 + 5 * logarithmic(rate, top)).toFixed(1);
      edge.path.classList.toggle("idle", rate === 0);
      setText(edge.label, rate ? `${short(rate)}/s` : "");
      const total = sum(edge.places.map((number) => flow.edges[number]?.[1] ?? 0));
      setText(edge.title, `${exact(total)} rows since the start`);
    });
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.colour === colour));
    }
    setText(legend, by.help);
  }

  function redraw() {
    if (rows.flow) repaint(rows.flow);
  }

  function choose(id) {
    chosen = id === chosen && detail ? null : id;
    detail?.end();
    detail = null;
    side.hidden = chosen === null;
    if (chosen !== null && rows.shape?.stages[chosen]) {
      detail = stagePanel(index, chosen, rows.shape.stages[chosen], () => choose(chosen));
      put(side, detail.node);
      detail.update(rows.flow);
    }
    redraw();
  }

  function fit() {
    if (!rows.size) return;
    const [wide, high] = [canvas.clientWidth || 800, canvas.clientHeight || 500];
    camera.scale = Math.min(1.15, wide / rows.size.width, high / rows.size.height);
    camera.x = (wide - rows.size.width * camera.scale) / 2;
    camera.y = Math.max(0, (high - rows.size.height * camera.scale) / 2);
    move();
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.02, camera.scale * factor));
    camera.x = x - ((x - camera.x) * scale) / camera.scale;
    camera.y = y - ((y - camera.y) * scale) / camera.scale;
    camera.scale = scale;
    camera.isOwn = true;
    move();
  }

  function move() {
    world.setAttribute("transform", `translate(${camera.x} ${camera.y}) scale(${camera.scale})`);
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const edge = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - edge.left, event.clientY - edge.top);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.target.closest(".box")) return;
    canvas.setPointerCapture(event.pointerId);
    const from = { x: event.clientX - camera.x, y: event.clientY - camera.y };
    const drag = (moved) => {
      camera.x = moved.clientX - from.x;
      camera.y = moved.clientY - from.y;
      camera.isOwn = true;
      move();
    };
    canvas.addEventListener("pointermove", drag);
    const drop = () => canvas.removeEventListener("pointermove", drag);
    canvas.addEventListener("lostpointercapture", drop, { once: true });
  });
  const resized = new ResizeObserver(() => { if (!camera.isOwn) fit(); });
  resized.observe(canvas);

  return {
    node,
    update(what, flow, shape) {
      rows.flow = flow;
      rows.shape = shape;
      let more = false;
      flow.stages.busy.forEach((busy, id) => {
        if ((busy > 0 || flow.stages.waiting[id] > 0) && !rows.busyIds.has(id)) {
          rows.busyIds.add(id);
          more = true;
        }
      });
      const key = JSON.stringify(shape);
      if (what === "shape" ? key !== rows.drawn : !rows.drawn) {
        rows.drawn = key;
        lay();
        if (chosen !== null && !detail) {
          const id = chosen;
          chosen = null;
          choose(id);
        }
      } else if (hidesIdle && more) lay();
      else repaint(flow);
      detail?.update(flow);
    },
    end() {
      resized.disconnect();
      detail?.end();
    },
  };
}

/** Edges from one stage to another as one, with their places in the shape. */
function merged(edges) {
  const all = new Map();
  edges.forEach(([from, to], place) => {
    const key = `${from} ${to}`;
    if (all.has(key)) all.get(key).places.push(place);
    else all.set(key, { from, to, places: [place] });
  });
  return [...all.values()];
}

const measure = document.createElement("canvas").getContext("2d");

/** A text that is cut so that it is no wider than so many pixels. */
function fitted(text, width) {
  measure.font = NAME_FONT;
  let end = Math.min(text.length, 80);
  let short = clipped(text, end);
  while (end > 1 && measure.measureText(short).width > width) short = clipped(text, (end -= 1));
  return short;
}

/** Where the rate of an edge stands: beside its middle, on the side that no box covers. */
function labelPlace(points, boxes) {
  const middle = points[points.length >> 1];
  const places = [
    { x: middle.x + 5, y: middle.y, anchor: "start" }, { x: middle.x - 5, y: middle.y, anchor: "end" },
  ];
  const isFree = ({ x, y, anchor }) => {
    const centre = x + (anchor === "start" ? LABEL.width : -LABEL.width) / 2;
    for (const box of boxes.values()) {
      if (Math.abs(box.x - centre) < (BOX.width + LABEL.width) / 2 && Math.abs(box.y - y) < (BOX.height + LABEL.height) / 2) return false;
    }
    return true;
  };
  return places.find(isFree) ?? places[0];
}

function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  for (let place = 0; place < rest.length - 1; place += 1) {
    const [here, next] = [rest[place], rest[place + 1]];
    const last = place === rest.length - 2;
    const end = last ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    path += `Q${here.x} ${here.y} ${end.x} ${end.y}`;
  }
  return rest.length === 1 ? `${path}L${rest[0].x} ${rest[0].y}` : path;
}

function arrowHead() {
  return s("defs", {}, s("marker", {
    id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto",
    markerUnits: "userSpaceOnUse",
  }, s("path", { d: "M0 0L8 4L0 8z", class: "arrow" })));
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
