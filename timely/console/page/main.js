// The frame of the page: which view is shown, what is in the head, and when it is drawn anew.

import { h, nameOf, put, seconds, setText } from "./format.js";
import { begin, findingsOf, hear, listen, state, verdictOf } from "./state.js";
import { overview } from "./overview.js";
import { flowView } from "./flow.js";
import { arrangements, inputs, outputs } from "./lists.js";
import { outputView } from "./output.js";
import { sqlView } from "./sql.js";
import { help } from "./help.js";

const VIEWS = [
  [/^$/, overview],
  [/^flow\/(\d+)(?:\/(graph|why|explain))?(?:\/(\d+))?$/, flowView],
  [/^flow\/(\d+)\/output\/(.+)$/, outputView],
  [/^arrangements$/, arrangements],
  [/^inputs$/, inputs],
  [/^outputs$/, outputs],
  [/^sql$/, sqlView],
  [/^help$/, help],
];
const LINKS = [
  ["", "Overview"], ["arrangements", "Kept rows"], ["inputs", "Inputs"], ["outputs", "Outputs"], ["sql", "SQL"],
  ["help", "Help"],
];

const view = document.getElementById("view");
const nav = document.getElementById("nav");
const verdict = document.getElementById("verdict");
const status = document.getElementById("status");
let shown = null;

function route() {
  const path = location.hash.replace(/^#\/?/, "");
  shown?.end?.();
  shown = null;
  for (const [pattern, make] of VIEWS) {
    const match = pattern.exec(path);
    if (match) {
      shown = make(...match.slice(1));
      break;
    }
  }
  put(view, shown ? shown.node : h("p", {}, "there is no such view"));
  drawNav();
  if (state.frame) shown?.update("shape");
}

function drawNav() {
  const here = location.hash.replace(/^#\/?/, "");
  const link = (path, ...text) => h("a", {
    href: `#/${path}`,
    "aria-current": here === path || (path.startsWith("flow/") && `${here}/`.startsWith(`${path}/`)) ? "page" : null,
  }, ...text);
  const flows = (state.frame?.flows ?? []).map((flow) =>
    link(`flow/${flow.dataflow}`, h("i", { class: `dot ${verdictOf(flow).kind}` }),
      h("span", { class: "name" }, nameOf(flow.name)), h("span", { class: "dim" }, ` ${flow.dataflow}`)));
  const kinds = JSON.stringify([here, (state.frame?.flows ?? []).map((f) => [f.dataflow, f.name, verdictOf(f).kind])]);
  if (nav.dataset.drawn === kinds) return;
  nav.dataset.drawn = kinds;
  put(nav, link(...LINKS[0]), h("h2", {}, "dataflows"), flows.length ? flows : h("p", { class: "dim" }, "none"),
    h("h2", {}, "of all dataflows"), LINKS.slice(1).map((each) => link(...each)));
}

function drawHead() {
  const [kind, text] = headline();
  verdict.className = `verdict ${kind}`;
  setText(verdict, text);
  const [mood, words] = hearing();
  status.className = `status ${mood}`;
  setText(status, words);
}

/** The answer to "does it keep up?". */
function headline() {
  if (state.status.state === "lost") return ["stuck", `the cluster has ended: ${state.status.message}`];
  if (state.status.state === "late") {
    const who = state.status.who?.length ? `: ${state.status.who.join("; ")}` : "";
    return ["stuck", `no answer for ${state.status.seconds} s${who}`];
  }
  if (!state.frame) return ["", "asking the workers …"];
  const flows = state.frame.flows;
  if (!flows.length) return ["", "no dataflow is installed"];
  const bad = flows.map((flow) => [flow, verdictOf(flow)]).filter(([, each]) => ["late", "stuck", "waits"].includes(each.kind));
  if (!bad.length) return ["good", flows.length === 1 ? `it ${verdictOf(flows[0]).text}` : `all ${flows.length} dataflows keep up`];
  bad.sort(([a], [b]) => b.behind_seconds - a.behind_seconds);
  const [flow, worst] = bad[0];
  const more = bad.length > 1 ? `, and ${bad.length - 1} more` : "";
  return [worst.kind, `${nameOf(flow.name)}: ${worst.text}${more}`];
}

/** How old the numbers are. */
function hearing() {
  if (!state.connected) return ["stuck", "this page has lost its server: is the console still running?"];
  const told = state.status;
  if (told.state === "answers" && state.frame) {
    const asked = state.frame.asked_seconds;
    return ["good", `${state.frame.workers.length} worker${state.frame.workers.length === 1 ? "" : "s"}: `
      + `answer in ${seconds(asked)}`];
  }
  if (told.state === "late" || told.state === "lost") {
    return ["late", told.age === null ? "" : `these numbers are ${seconds(told.age)} old. ${told.again ?? ""}`];
  }
  return ["", ""];
}

listen((what) => {
  drawHead();
  if (what === "status") return;
  drawNav();
  if (state.frame) shown?.update(what);
});
window.addEventListener("hashchange", route);
globalThis.naiad = { state, findingsOf, hear, verdictOf }; // for the console of a browser
begin();
route();
drawHead();
