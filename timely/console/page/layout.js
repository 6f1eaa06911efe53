// Where the boxes of a graph stand: dagre for small graphs, layers by the longest path for large ones.

import { Graph, layout as dagre } from "./vendor/dagre.js";

export const BOX = { width: 222, height: 54 };
const DAGRE_MAX = 250;
const GAP = { x: 28, y: 46 };

/**
 * stages: [{id, loop}], edges: [[from, to]]. Returns {boxes: Map(id → {x, y}), paths: [[{x, y}]], loops:
 * [{name, x, y, width, height}], width, height}; x and y are centres.
 */
export function layout(stages, edges) {
  if (!stages.length) return { boxes: new Map(), paths: [], loops: [], width: 1, height: 1 }; // all are idle, and hidden
  return stages.length <= DAGRE_MAX ? byDagre(stages, edges) : byLayers(stages, edges);
}

function byDagre(stages, edges) {
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: GAP.x, ranksep: GAP.y, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const loops = new Set(stages.map((stage) => stage.loop).filter(Boolean));
  for (const loop of loops) graph.setNode(`loop ${loop}`, {});
  for (const stage of stages) {
    graph.setNode(String(stage.id), { ...BOX });
    if (stage.loop) graph.setParent(String(stage.id), `loop ${stage.loop}`);
  }
  edges.forEach(([from, to], number) => {
    if (from !== to) graph.setEdge(String(from), String(to), {}, String(number));
  });
  dagre(graph);
  const boxes = new Map(stages.map((stage) => {
    const { x, y } = graph.node(String(stage.id));
    return [stage.id, { x, y }];
  }));
  const paths = edges.map(([from, to], number) =>
    from === to ? around(boxes.get(from)) : graph.edge(String(from), String(to), String(number)).points);
  return {
    boxes, paths, width: graph.graph().width, height: graph.graph().height,
    loops: [...loops].map((name) => ({ name, ...graph.node(`loop ${name}`) })),
  };
}

/** Layers by the longest way from a stage without inputs; in a layer in the order of the mean place of inputs. */
function byLayers(stages, edges) {
  const out = new Map(stages.map((stage) => [stage.id, []]));
  const into = new Map(stages.map((stage) => [stage.id, []]));
  const place = new Map(stages.map((stage, number) => [stage.id, number]));
  for (const [from, to] of edges) {
    if (place.get(from) < place.get(to)) {
      out.get(from).push(to);
      into.get(to).push(from);
    }
  }
  const rank = new Map();
  for (const { id } of stages) rank.set(id, Math.max(-1, ...into.get(id).map((each) => rank.get(each))) + 1);
  const layers = [];
  for (const { id } of stages) (layers[rank.get(id)] ??= []).push(id);
  const at = new Map();
  const number = () => layers.forEach((layer) => layer.forEach((id, each) => at.set(id, each - layer.length / 2)));
  number();
  for (let round = 0; round < 6; round += 1) {
    const beside = round % 2 ? out : into;
    const mean = new Map(stages.map(({ id }) => {
      const near = beside.get(id);
      return [id, near.length ? near.reduce((sum, each) => sum + at.get(each), 0) / near.length : at.get(id)];
    }));
    for (const layer of layers) layer.sort((a, b) => mean.get(a) - mean.get(b));
    number();
  }
  const widest = Math.max(...layers.map((layer) => layer.length));
  const width = widest * (BOX.width + GAP.x) + 32;
  const boxes = new Map();
  layers.forEach((layer, level) => layer.forEach((id, each) => boxes.set(id, {
    x: width / 2 + (each - (layer.length - 1) / 2) * (BOX.width + GAP.x),
    y: 16 + BOX.height / 2 + level * (BOX.height + GAP.y),
  })));
  const paths = edges.map(([from, to]) => {
    const [a, b] = [boxes.get(from), boxes.get(to)];
    if (from === to) return around(a);
    const [start, end] = [{ x: a.x, y: a.y + BOX.height / 2 }, { x: b.x, y: b.y - BOX.height / 2 }];
    return [start, { x: start.x, y: start.y + GAP.y / 2 }, { x: end.x, y: end.y - GAP.y / 2 }, end];
  });
  return { boxes, paths, loops: [], width, height: 32 + layers.length * (BOX.height + GAP.y) };
}

function around({ x, y }) {
  const [right, half] = [x + BOX.width / 2, BOX.height / 2];
  return [{ x: right, y: y - half / 2 }, { x: right + 20, y }, { x: right, y: y + half / 2 }];
}
