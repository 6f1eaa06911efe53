// A curve for each dataflow over the last five minutes, by uPlot.

import { h, nameOf, put } from "./format.js";
import { shapeOf, state } from "./state.js";

const COLOURS = ["#1c7ed6", "#e8590c", "#2f9e44", "#ae3ec9", "#f08c00", "#0c8599", "#e03131", "#5c5f66"];
const CURVES_MAX = COLOURS.length;
const SPAN_SECONDS = 30; // at least: a curve that has just begun stands at the right
const scheme = matchMedia("(prefers-color-scheme: dark)");

function clock(at) {
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}

export function chart(title, of, text) {
  const place = h("div", { class: "plot" });
  const node = h("div", { class: "card chart" }, h("h1", {}, title), place);
  let plot = null;
  let drawn = "";
  let width = 0;

  function make(indices) {
    plot?.destroy();
    put(place);
    const style = getComputedStyle(document.documentElement);
    const axis = {
      stroke: style.getPropertyValue("--dim"), grid: { stroke: style.getPropertyValue("--line"), width: 1 },
      ticks: { show: false }, font: "11px system-ui, sans-serif",
    };
    plot = new globalThis.uPlot({
      width, height: 150,
      cursor: { drag: { x: false, y: false } },
      legend: { live: false },
      scales: { x: { range: (_, low, high) => [Math.min(low, high - SPAN_SECONDS), high] }, y: { range: (_, __, high) => [0, Math.max(high, 1) * 1.1] } },
      axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(text) }],
      series: [{}, ...indices.map((index, number) => ({
        label: nameOf(shapeOf(index)?.name ?? String(index)), stroke: COLOURS[number], width: 1.5,
        points: { show: false }, spanGaps: false,
      }))],
    }, data(indices), place);
  }

  function data(indices) {
    const pasts = indices.map((index) => state.history.get(index));
    if (pasts.length === 1) return [pasts[0].t, of(pasts[0])];
    return globalThis.uPlot.join(pasts.map((past) => [past.t, of(past)]));
  }

  return {
    node,
    update() {
      if (!globalThis.uPlot) return;
      const indices = [...state.history.keys()].slice(0, CURVES_MAX);
      if (!indices.length) return;
      const wide = place.clientWidth;
      const key = `${indices.join(",")} ${wide} ${scheme.matches}`;
      if (key !== drawn) {
        drawn = key;
        width = wide;
        make(indices);
      } else {
        plot.setData(data(indices));
      }
    },
    end() {
      plot?.destroy();
    },
  };
}
