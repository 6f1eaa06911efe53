// What the page knows: the last shape and frame, the last five minutes, and how the server is heard.

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
  history: new Map(), // by dataflow: {t, lag, rows, kept, stages: [{t, kept}]}
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

/** Hear the server, as long as the page is to be seen: a hidden page costs nothing. */
export function begin() {
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
  tell("frame");
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
      past = { t: [], lag: [], rows: [], stages: [], moved: frame.at, complete: flow.complete_before, sealed: frame.at, epoch: flow.epoch };
      state.history.set(flow.dataflow, past);
    }
    if (past.epoch !== flow.epoch) {
      past.epoch = flow.epoch;
      past.sealed = frame.at;
    }
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
const STILL_SECONDS = 5;
const GROWS_BYTES = 1 << 20;
const GROWS_SECONDS = 20;

/** Whether a dataflow keeps up: {kind: "good" | "late" | "stuck" | "done", text}. */
export function verdictOf(flow) {
  if (flow.complete_before === null) return { kind: "done", text: "done: all inputs are closed" };
  if (flow.behind_seconds <= BEHIND_SECONDS) return { kind: "good", text: "keeps up" };
  const past = state.history.get(flow.dataflow);
  const still = past ? state.frame.at - past.moved : 0;
  if (still >= STILL_SECONDS) {
    return { kind: "stuck", text: `no epoch complete for ${Math.round(still)} s` };
  }
  return { kind: "late", text: `${flow.behind_seconds.toFixed(1)} s behind` };
}

/** What the server has noticed, and what has grown while this page looked. */
export function findingsOf(flow) {
  const findings = [...flow.findings];
  const history = state.history.get(flow.dataflow);
  const unsealed = history ? state.frame.at - history.sealed : 0;
  for (const input of flow.inputs) {
    if (input.waiting && unsealed >= STILL_SECONDS) {
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
