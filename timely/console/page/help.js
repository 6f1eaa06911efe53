// What to look at, and what the words mean.

import { h } from "./format.js";

const STEPS = [
  ["One stage is red by busy", "It takes most of a worker's time, and all others there wait for it. Its line is in its box. A Python "
    + "function for each row? Write it with expressions, which are compiled. A join that meets very many rows? Filter in front "
    + "of it. Otherwise more workers share it."],
  ["An input is red by busy", "What follows it for each row (map, filter, select) runs in the input's stage. “What holds it” names the "
    + "function and line that run. A small insertion enters at one worker; a large one is spread over all."],
  ["One stage is red by skew", "One worker does most of its work: one key has most of it, or few keys have all. balance= of a join or of "
    + "group_by spreads such keys: docs/skew_joins.md. Click the stage: are its kept rows as uneven? A skew where little is busy says nothing."],
  ["A stage takes a worker's time, but its process has no processor", "Busy is time by the clock. Either a function waits (sleep, disk, network), "
    + "or the machine has too few processors for what runs on it."],
  ["It waits for an input", "Others are epochs ahead of it, and nothing that reads both is complete before all are sealed. "
    + "Call seal() of this input, or close it."],
  ["Rows wait at an input", "They wait for a seal: nobody calls flow.seal()."],
  ["A reader is silent", "A program has read changes of this output, and has not asked since. Workers keep for it what it has not read. "
    + "Let it go on, or call output.leave() in it."],
  ["Kept rows grow", "Rows that are never removed: is there a window (during, last), or does a client remove them? Or a reader of an "
    + "arrangement holds it back: click the stage."],
  ["No stage is busy, and epochs are late", "Look at what holds the epoch: a message under way, a stopped worker, a slow disk, a reader."],
];

const WORDS = [
  ["epoch", "a group of changes that belong together. It is sealed when no row enters it any more, and complete when all its work is done."],
  ["behind", "how many epochs are sealed at all inputs and not complete, and how long ago the first of them was sealed."],
  ["busy", "seconds by the clock that stages work for each second. With two workers 200 % is the most."],
  ["skew", "the time of the worker that works longest, beside the mean of all: 2.00 with two workers says that one does everything."],
  ["waiting", "rows that have come to a stage and wait for its next turn, and about how many bytes they take."],
  ["coming", "rows on their way to a worker from others; on rings: their bytes in shared memory."],
  ["keeps", "bytes of rows that a stage remembers, to answer later changes."],
  ["arrangement", "rows kept once, by key, for several operators. Its parts: runs (sorted), head and tail (newest), merges under way, "
    + "and what postponed work has pinned."],
  ["holds back", "a reader may still ask about these times, so rows of them cannot be summed up."],
];

export function help() {
  return {
    node: h("section", {},
      h("div", { class: "card" }, h("h1", {}, "It does not keep up: what to look at"),
        h("p", {}, "The head of the page says whether it keeps up. The overview lists what the page has noticed; each line leads to "
          + "the place. In the graph, colour by busy first, then by skew, waiting and bytes. “What holds it” asks the workers what "
          + "an epoch waits for."),
        h("dl", { class: "wide" }, STEPS.flatMap(([what, then]) => [h("dt", {}, what), h("dd", {}, then)]))),
      h("div", { class: "card" }, h("h1", {}, "Words"),
        h("dl", { class: "wide" }, WORDS.flatMap(([what, then]) => [h("dt", {}, what), h("dd", {}, then)])))),
    update() {},
  };
}
