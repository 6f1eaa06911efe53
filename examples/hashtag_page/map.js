// The groups of a window of mentions as a map, from three live outputs. All texts of the tweets become text nodes.

import { followTogether } from "/static/following.js";
import { clipped, exact, h, put, s, setText } from "/static/format.js";
import { Rows } from "/static/rows.js";
import { listen, state } from "/static/state.js";
import { Circles } from "./circles.js";

const KEPT_MAPS_MAX = 500;
const LISTED = 12;
const RADIUS_PER_USER = 9; // of a group with one user; areas go by the number of users
const LETTER = 0.66; // width of a letter, as a share of its height

const byId = (id) => document.getElementById(id);
const svg = byId("map");
const lines = s("g");
const groups = s("g");
svg.append(lines, groups);

const circles = new Circles();
const nodes = new Map(); // by component: the group in the map
const past = []; // maps that were shown, oldest first: {epoch, groups, ties, facts, count}
const largest = new Rows();
byId("largest").append(largest.node);
let shown = null;
let chosen = null;
let isLive = true;
let isMoving = false;

/** Rows as objects. Cells are texts. */
function records({ columns, rows }) {
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, place) => [name, row[place]])));
}

followTogether("hashtag_map", {
  groups: { sort: "users", descending: true }, ties: { sort: "mentions", descending: true }, facts: {},
}, ({ tables, epoch, error }) => {
  show("error", error);
  if (!tables) return;
  const facts = Object.fromEntries(records(tables.facts).map(({ what, value }) => [what, Number(value)]));
  if (facts.end === undefined) return; // no epoch is complete
  past.push({ epoch, facts, groups: records(tables.groups), ties: records(tables.ties), count: tables.groups.total });
  if (past.length > KEPT_MAPS_MAX) past.shift();
  byId("past").max = String(past.length - 1);
  if (isLive) draw(past.at(-1));
});

listen(() => {
  if (!state.connected) show("error", "this page has lost its server: is the program still running?");
  else if (state.status.state === "lost") show("error", `the cluster has ended: ${state.status.message}`);
});

byId("past").addEventListener("input", () => live(Number(byId("past").value) === past.length - 1));
byId("live").addEventListener("click", () => { byId("past").value = byId("past").max; live(true); });

/** Follow the newest map, or stay at the one that is chosen. */
function live(is) {
  isLive = is;
  byId("live").setAttribute("aria-pressed", String(is));
  const map = past[Number(byId("past").value)];
  if (map) draw(map);
}

function show(id, text) {
  byId(id).hidden = !text;
  setText(byId(id), text ?? "");
}

function date(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

/** Topics have colours that stay; what speaks of nothing is grey. */
function colour(hashtag) {
  if (hashtag === null) return "hsl(210 8% 72%)";
  let sum = 0;
  for (const letter of hashtag) sum = (sum * 31 + letter.codePointAt(0)) % 360;
  return `hsl(${sum} 65% 68%)`;
}

function draw(map) {
  shown = map;
  if (isLive) byId("past").value = byId("past").max;
  const { facts } = map;
  setText(byId("window"), `${date(facts.end - facts.seconds)} to ${date(facts.end)} UTC`);
  const more = map.count > map.groups.length ? `, the largest ${map.groups.length} of them here` : "";
  const mixed = map.epoch === null ? " · epochs come quickly: some figures are of another epoch" : "";
  setText(byId("facts"), `${exact(facts.tweets ?? 0)} tweets by and about ${exact(facts.users ?? 0)} users · `
    + `${exact(map.count)} groups of two and more${more}${mixed}`);
  byId("facts").dataset.end = String(facts.end);
  circles.set(
    map.groups.map((group) => ({ key: group.component, radius: RADIUS_PER_USER * Math.sqrt(Number(group.users)) })),
    map.ties.map(({ source, target }) => ({ from: source, to: target })));
  drawGroups(map.groups);
  drawTies(map.ties);
  largest.update({
    columns: [{ name: "hashtag" }, { name: "users", is_number: true }, { name: "uses", is_number: true }],
    rows: map.groups.slice(0, LISTED).map(({ hashtag, users, uses }) => [hashtag === null ? "–" : `#${hashtag}`, users, uses]),
  });
  drawChosen();
  if (!isMoving) {
    isMoving = true;
    requestAnimationFrame(moves);
  }
}

function drawGroups(all) {
  const there = new Set();
  for (const group of all) {
    there.add(group.component);
    let node = nodes.get(group.component);
    if (!node) {
      node = { circle: s("circle"), tag: s("text"), users: s("text", { class: "users" }), title: s("title") };
      node.g = s("g", { class: "group", "data-component": group.component, onclick: () => choose(group.component) },
        node.circle, node.tag, node.users, node.title);
      nodes.set(group.component, node);
      groups.append(node.g);
    }
    const { radius } = circles.all.get(group.component);
    node.circle.setAttribute("r", String(radius));
    node.circle.setAttribute("fill", colour(group.hashtag));
    const tag = group.hashtag === null ? "" : `#${clipped(group.hashtag, 24)}`;
    const height = Math.min(radius / 2, (1.8 * radius) / Math.max(1, tag.length * LETTER));
    node.tag.setAttribute("font-size", String(height));
    node.users.setAttribute("font-size", String(radius / 3));
    node.users.setAttribute("y", String(height * 0.5 + radius / 4));
    setText(node.tag, tag);
    setText(node.users, exact(Number(group.users)));
    setText(node.title, `${tag || "no hashtag"}: ${group.users} users, used ${group.uses} times`);
    node.g.classList.toggle("chosen", group.component === chosen);
  }
  for (const [component, node] of nodes) {
    if (there.has(component)) continue;
    node.g.remove();
    nodes.delete(component);
  }
}

function drawTies(ties) {
  const seen = ties.filter(({ source, target }) => nodes.has(source) && nodes.has(target));
  put(lines, seen.map(({ source, target, mentions }) =>
    s("line", { "data-from": source, "data-to": target, "stroke-width": String(Math.min(6, 0.8 + Math.log2(Number(mentions)))) })));
}

function moves() {
  isMoving = circles.step();
  for (const [component, { g }] of nodes) {
    const { x, y } = circles.all.get(component);
    g.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  }
  for (const line of lines.children) {
    const [a, b] = [circles.all.get(line.dataset.from), circles.all.get(line.dataset.to)];
    line.setAttribute("x1", a.x.toFixed(1));
    line.setAttribute("y1", a.y.toFixed(1));
    line.setAttribute("x2", b.x.toFixed(1));
    line.setAttribute("y2", b.y.toFixed(1));
  }
  const { x, y, width, height } = circles.bounds();
  svg.setAttribute("viewBox", `${x.toFixed(1)} ${y.toFixed(1)} ${width.toFixed(1)} ${height.toFixed(1)}`);
  if (isMoving) requestAnimationFrame(moves);
}

function choose(component) {
  chosen = chosen === component ? null : component;
  for (const [each, { g }] of nodes) g.classList.toggle("chosen", each === chosen);
  drawChosen();
}

function drawChosen() {
  const group = shown?.groups.find(({ component }) => component === chosen);
  if (!group) {
    const text = chosen === null ? "Click a group to see what belongs to it." : `No group has user ${chosen} as its first in this window.`;
    put(byId("chosen"), h("p", { class: "dim" }, text));
    return;
  }
  const title = (component) => {
    const other = shown.groups.find((each) => each.component === component);
    if (!other) return `the group of user ${component}`;
    return `${other.hashtag === null ? "no hashtag" : `#${other.hashtag}`}, ${exact(Number(other.users))} users`;
  };
  const ties = shown.ties.filter(({ source, target }) => source === chosen || target === chosen);
  put(byId("chosen"),
    h("h1", {}, group.hashtag === null ? "no hashtag" : `#${group.hashtag}`),
    h("p", {}, `${exact(Number(group.users))} users, the first of them ${group.component}; they have used it ${exact(Number(group.uses))} times.`),
    ties.length ? h("ul", {}, ties.map(({ source, target, mentions }) => h("li", {}, source === chosen
      ? `mentions ${title(target)}: ${exact(Number(mentions))}` : `is mentioned by ${title(source)}: ${exact(Number(mentions))}`)))
      : h("p", { class: "dim" }, "It mentions no other group here, and none mentions it."));
}
