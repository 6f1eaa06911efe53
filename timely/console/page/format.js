// Nodes and numbers. Every text of a cluster becomes a text node: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: h("td", {class: "number", title: "12"}, "12"). Children are nodes, texts, or null. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Make an element of SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** Change the text of a node only if it is another one. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Replace the children of a node. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

/** A number with three digits and a letter: 12.3k. */
export function short(number) {
  if (number === null || number === undefined) return "–";
  let rest = Math.abs(number);
  for (const unit of ["", "k", "M", "G"]) {
    if (rest < 999.5 || unit === "G") {
      const text = rest < 999.5 ? String(Number(rest.toPrecision(3))) : rest.toFixed(0);
      return (number < 0 ? "−" : "") + text + unit;
    }
    rest /= 1000;
  }
  return "";
}

/** Bytes in units of 1,024. */
export function size(number) {
  if (number === null || number === undefined) return "–";
  if (!number) return "0";
  let rest = Math.abs(number);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (rest < 1023.5 || unit === "GiB") {
      const text = unit === "B" || rest >= 100 ? rest.toFixed(0) : rest.toFixed(1);
      return `${number < 0 ? "−" : ""}${text} ${unit}`;
    }
    rest /= 1024;
  }
  return "";
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 0.995) return `${Number((value * 1000).toPrecision(2))} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

/** A number with commas; the server sends whole numbers that a browser would round as texts. */
export function exact(number) {
  if (typeof number === "string") return BigInt(number).toLocaleString("en-US");
  return number === null || number === undefined ? "" : number.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** A file without its folders, and the line. */
export function siteOf(site) {
  return site.slice(site.lastIndexOf("/") + 1);
}

export function clipped(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** The part of a dataflow's name behind its module. */
export function nameOf(spec) {
  return spec.slice(spec.lastIndexOf(":") + 1) || spec;
}
