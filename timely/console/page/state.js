// What the page knows: the last shape and frame, the last five minutes, and how the server is heard.

import { ask } from "./asking.js";

const SAMPLES_MAX = 1200;
const GAP_SECONDS = 3; // a page that was hidden, or a worker that was stopped: no line goes over it
const KEPT_EVERY_SECONDS = 5;
const KEPT_SAMPLES_MAX = 25;

export const state = {
  shape: { flows: {}, ended: [] },
  frame: null,
  frames: 0, // how many have come
  status: { state: "starts" },
  connected: false,
  history: new Map(), // by dataflow: {t, lag, rows, kept, stages: [{t, kept}], inputs, noticed}
  causes: new Map(), // by dataflow that is late: {at, epoch, text}, what holds it
};

const listeners = new Set();

/** Call a function after each change; return what ends that. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(what) {
  for (const listener of listeners) listener(what);
}

let source = null;

let hasBegun = false;

/** Hear the server, as long as the page is to be seen: a hidden page costs nothing. The second call does nothing. */
export function begin() {
  if (hasBegun) return;
  hasBegun = true;
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  if (!document.hidden) start();
}

function start() {
  if (source) return;
  source = new EventSource("/events");
  source.onopen = () => { state.connected = true; tell("status"); };
  source.onerror = () => { state.connected = false; tell("status"); };
  source.addEventListener("status", (event) => { state.status = JSON.parse(event.data); tell("status"); });
  source.addEventListener("shape", (event) => { state.shape = JSON.parse(event.data); tell("shape"); });
  source.addEventListener("frame", (event) => hear(JSON.parse(event.data)));
}

/** Take a frame. */
export function hear(frame) {
  if (!frame.flows) return;
  state.frame = frame;
  state.frames += 1;
  remember(frame);
  askCauses();
  tell("frame");
}

const CAUSE_EVERY_MS = 5000; // each page that sees a late dataflow asks so seldom for the cause
const CAUSE_KEPT_MS = 10000;
let causeAsked = -CAUSE_EVERY_MS;

/** Ask what holds the dataflow that is latest, and forget old answers. */
async function askCauses() {
  const late = state.frame.flows.filter(isLate).sort((a, b) => b.behind_seconds - a.behind_seconds);
  for (const [index, { at }] of state.causes) if (performance.now() - at > CAUSE_KEPT_MS) state.causes.delete(index);
  if (!late.length || performance.now() - causeAsked < CAUSE_EVERY_MS) return;
  causeAsked = performance.now();
  const told = await ask(whyPath(late[0]));
  const [cause] = told?.reasons ?? [];
  if (!cause) return;
  state.causes.set(late[0].dataflow, { at: performance.now(), epoch: told.epoch, text: cause.text });
  tell("cause");
}

/** Where the server says what holds a dataflow: its last sealed epoch, or the one that waits for an input. */
export function whyPath(flow, epoch = "") {
  const isOpen = epoch === "" && flow && !flow.behind_epochs && (slowInputOf(flow) || waitingInputOf(flow));
  const chosen = isOpen ? String(flow.complete_before) : epoch;
  return `/why?dataflow=${flow.dataflow}${chosen === "" ? "" : `&epoch=${encodeURIComponent(chosen)}`}`;
}

function stop() {
  source?.close();
  source = null;
}

function remember(frame) {
  const there = new Set();
  for (const flow of frame.flows) {
    there.add(flow.dataflow);
    let past = state.history.get(flow.dataflow);
    if (!past) {
      past = {
        t: [], lag: [], rows: [], stages: [], moved: frame.at, complete: flow.complete_before, inputs: new Map(),
        noticed: [],
      };
      state.history.set(flow.dataflow, past);
    }
    for (const { name, epoch } of flow.inputs) {
      if (past.inputs.get(name)?.epoch !== epoch) past.inputs.set(name, { epoch, since: frame.at });
    }
    past.noticed.push({ t: frame.at, seconds: frame.seconds, findings: flow.findings, lag: flow.behind_seconds });
    // The clock of the server may be set back: what is far ahead goes, too.
    while (past.noticed.length > 1 && Math.abs(frame.at - past.noticed[0].t) > STEADY_SECONDS) past.noticed.shift();
    if (past.complete !== flow.complete_before) {
      past.complete = flow.complete_before;
      past.moved = frame.at;
    }
    if (past.t.length && frame.at - past.t.at(-1) > GAP_SECONDS) {
      push(past.t, past.t.at(-1) + GAP_SECONDS);
      push(past.lag, null);
      push(past.rows, null);
    }
    push(past.t, frame.at);
    push(past.lag, flow.behind_seconds);
    push(past.rows, flow.rows);
    const last = past.stages.at(-1);
    if (!last || frame.at - last.t >= KEPT_EVERY_SECONDS) {
      past.stages.push({ t: frame.at, kept: flow.stages.kept });
      if (past.stages.length > KEPT_SAMPLES_MAX) past.stages.shift();
    }
  }
  for (const index of state.history.keys()) if (!there.has(index)) state.history.delete(index);
}

function push(list, value) {
  list.push(value);
  if (list.length > SAMPLES_MAX) list.splice(0, SAMPLES_MAX / 10);
}

export function flowOf(index) {
  return state.frame?.flows.find((flow) => flow.dataflow === index) ?? null;
}

export function shapeOf(index) {
  return state.shape.flows[String(index)] ?? null;
}

const BEHIND_SECONDS = 1;
const EPOCHS_APART = 2;
const STEADY_SECONDS = 4;
const STEADY_SHARE = 0.5; // of these seconds: a single interval of a quarter of a second says little
const STILL_SECONDS = 5;
const GROWS_BYTES = 1 << 20;
const GROWS_SECONDS = 20;

/** For how many seconds an input has not been sealed, as far as this page has seen. */
function unsealedSeconds(flow, name) {
  const input = state.history.get(flow.dataflow)?.inputs.get(name);
  return input ? state.frame.at - input.since : 0;
}

/** The input that nobody seals while others go on, as {name, epochs, seconds}; null if there is none. */
function slowInputOf(flow) {
  const open = flow.inputs.filter((input) => input.epoch !== null);
  const [first] = open.sort((a, b) => b.behind - a.behind);
  const seconds = first ? unsealedSeconds(flow, first.name) : 0;
  if (!first || first.behind < EPOCHS_APART || seconds < STILL_SECONDS) return null;
  return { name: first.name, epochs: first.behind, seconds };
}

/** The first input whose rows wait for a seal. */
function waitingInputOf(flow) {
  return flow.inputs.find((input) => input.waiting && unsealedSeconds(flow, input.name) >= STILL_SECONDS) ?? null;
}

export function isLate(flow) {
  return ["late", "stuck", "waits"].includes(verdictOf(flow).kind);
}

/** Whether a dataflow keeps up: {kind: "good" | "late" | "stuck" | "waits" | "done", text}. */
export function verdictOf(flow) {
  if (flow.complete_before === null) return { kind: "done", text: "done: all inputs are closed" };
  const past = state.history.get(flow.dataflow);
  const lag = Math.max(flow.behind_seconds, ...(past?.noticed ?? []).map((each) => each.lag));
  if (lag <= BEHIND_SECONDS) {
    const slow = slowInputOf(flow);
    if (slow) return { kind: "waits", text: `waits for input '${slow.name}': others are ${slow.epochs.toLocaleString("en-US")} epochs ahead` };
    return { kind: "good", text: waitingInputOf(flow) ? "keeps up; rows wait for a seal" : "keeps up" };
  }
  if (flow.behind_seconds <= BEHIND_SECONDS) return { kind: "late", text: `up to ${lag.toFixed(1)} s behind` };
  // A dataflow that had nothing to do for an hour has not stood still for an hour.
  const still = past ? Math.min(state.frame.at - past.moved, flow.behind_seconds) : 0;
  if (still >= STILL_SECONDS) {
    return { kind: "stuck", text: `no epoch complete for ${Math.round(still)} s` };
  }
  return { kind: "late", text: `${flow.behind_seconds.toFixed(1)} s behind` };
}

/** What the server has noticed, and what has grown while this page looked. */
export function findingsOf(flow) {
  const history = state.history.get(flow.dataflow);
  const slow = slowInputOf(flow);
  const findings = flow.findings.filter((each) => !IS_WORK.has(each.kind) && (each.kind !== "input" || slow));
  findings.push(...steadyOf(history));
  for (const input of flow.inputs) {
    const unsealed = unsealedSeconds(flow, input.name);
    if (input.waiting && unsealed >= STILL_SECONDS && input.name !== slow?.name) {
      findings.push({
        kind: "input", stage: -1,
        text: `${input.waiting.toLocaleString("en-US")} rows wait at input '${input.name}': nobody has sealed epoch `
          + `${input.epoch} for ${Math.round(unsealed)} s`,
        advice: "Call flow.seal(): rows enter when their epoch is sealed.",
      });
    }
  }
  const past = history?.stages ?? [];
  const [first, last] = [past[0], past.at(-1)];
  if (first && last.t - first.t >= GROWS_SECONDS && first.kept.length === last.kept.length) {
    const middle = past[past.length >> 1];
    let most = null;
    last.kept.forEach((kept, stage) => {
      const more = kept - first.kept[stage];
      const grows = kept > middle.kept[stage] && middle.kept[stage] > first.kept[stage];
      if (grows && more >= GROWS_BYTES && more >= kept / 5 && (!most || more > most.more)) most = { stage, more };
    });
    if (most) {
      const name = shapeOf(flow.dataflow)?.stages[most.stage]?.name ?? "a stage";
      const mib = (most.more / (1 << 20)).toFixed(1);
      findings.push({
        kind: "grows", stage: most.stage,
        text: `${name} keeps ${mib} MiB more than ${Math.round(last.t - first.t)} s ago`,
        advice: "Is there a window, or a removal, for rows that are old? Or does a reader hold it back: click the stage.",
      });
    }
  }
  return findings;
}

const IS_WORK = new Set(["busy", "uneven", "waiting"]);

/** What has been the case for most of the last seconds, of stages at work: for each the finding that came last. */
function steadyOf(history) {
  const noticed = history?.noticed ?? [];
  const all = noticed.reduce((total, each) => total + each.seconds, 0);
  const stages = new Map();
  for (const { seconds, findings } of noticed) {
    for (const each of findings) {
      if (!IS_WORK.has(each.kind)) continue;
      const key = `${each.kind === "waiting"} ${each.stage}`;
      stages.set(key, { seconds: (stages.get(key)?.seconds ?? 0) + seconds, finding: each });
    }
  }
  return [...stages.values()].filter((each) => each.seconds >= all * STEADY_SHARE).map((each) => each.finding);
}
