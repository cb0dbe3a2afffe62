// The attention figure: lines between subwords, a heat map, and small heat maps of all heads.
// The served page imports this file, and offline pages embed it: see showAttention.
// Layers, heads and subwords are counted from 0 and shown from 1.

const FAINT = 0.01; // lines with smaller weights are not drawn
const KINDS = { // field of the answer, title, headings of queries and keys
  cross: ["memory", "Cross-attention", "Translation", "attends to the source"],
  encoder: ["encoder", "Encoder self-attention", "Source", "attends to the source"],
  decoder: ["decoder", "Decoder self-attention", "Translation", "attends to earlier words"],
};
const MARKUP = `
<div class="controls" id="controls">
<fieldset id="kinds" aria-label="Attention"></fieldset>
<fieldset id="layers"><legend>Layer</legend></fieldset>
<fieldset id="heads"><legend>Head</legend></fieldset>
</div>
<div class="pictures">
<figure><div class="lines" id="lines">
<h3 class="queries" id="queries-title"></h3><h3 class="keys" id="keys-title"></h3>
<ol class="words queries" id="queries" aria-labelledby="queries-title"></ol>
<svg id="links" preserveAspectRatio="none" role="img" aria-labelledby="caption"></svg>
<ol class="words keys" id="keys" aria-labelledby="keys-title"></ol>
</div><figcaption><b id="caption"></b> <span id="reading"></span> Point at a word to isolate it, or move
to it with the arrow keys; click to pin it, Escape to release it.</figcaption></figure>
<figure><div class="scroll" tabindex="0" role="region" aria-label="Heat map">
<table id="heat" aria-labelledby="caption"></table>
</div><figcaption id="heat-caption"></figcaption></figure>
</div>
<section aria-labelledby="overview-title">
<h2 id="overview-title">All heads</h2>
<p class="note">2.3 is head 3 of layer 2. Click a head to show it above; Shift-click adds it to the
heads shown for its layer, or removes it.</p>
<p class="note" id="ordering"><label>Order: <select name="order" id="order">
<option value="">by layer and head</option></select></label> <span id="meaning"></span></p>
<div class="overview" id="overview"></div>
</section>`;

export const $ = (id) => document.getElementById(id);
const sum = (values) => values.reduce((total, value) => total + value, 0);
// A head's colour, lighter on a dark page; the same as in printed pictures.
const colour = (head, opacity = 1) => {
  const hue = (210 + 137.5 * head) % 360;
  return `light-dark(hsl(${hue} 60% 45% / ${opacity}), hsl(${hue} 60% 68% / ${opacity}))`;
};

let root = null; // the element that holds the figure
let given = null; // see showAttention
let view = null; // {field, queries, keys: labels; weights: [N][H][Q][K]} of the chosen kind
// side and index: the isolated subword in "queries" or "keys", or null; held: whether it was
// clicked; order: the measure that all heads are sorted by, or "".
const state = { kind: "cross", order: "" };

/**
 * Draws the figure in `place`; selections are kept. A page has one figure.
 *
 * data: {source_labels, target_labels, encoder, decoder, memory}, as /attention answers;
 *       optionally readAtMost: the model's limit on source subwords;
 *       optionally {measures: {name: meaning},
 *                summary: {encoder, decoder, memory: for each head, a number for each measure}}
 */
export function showAttention(place, data) {
  given = { readAtMost: Infinity, measures: {}, ...data };
  letGo();
  if (root === null) {
    root = place;
    root.innerHTML = MARKUP;
    makeView();
    state.layer = view.weights.length - 1;
    state.heads = [sharpest(view.weights[state.layer])];
    makeControls();
    answerEvents();
  }
  drawAll();
}

function makeView() {
  const { source_labels: source, target_labels: target } = given;
  const [queries, keys] = { cross: [target, source], encoder: [source, source],
    decoder: [target, ["<s>", ...target.slice(0, -1)]] }[state.kind];
  const [field] = KINDS[state.kind];
  view = { field, queries, keys, weights: given[field] };
}

const weight = (head, q, k) => view.weights[state.layer][head][q][k];
const mean = (q, k) => sum(state.heads.map((head) => weight(head, q, k))) / state.heads.length;

function sharpest(heads) {
  const squares = heads.map((rows) => sum(rows.flat().map((w) => w * w)));
  return squares.indexOf(Math.max(...squares));
}

// ---- Drawing

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawAll() {
  makeView();
  ["queries", "keys"].forEach((side, n) => {
    $(`${side}-title`).textContent = KINDS[state.kind][2 + n];
    $(side).replaceChildren(...view[side].map((text, i) => element("li", {}, element("button",
      { type: "button", "data-side": side, "data-index": i, title: text, tabindex: i ? -1 : 0 },
      text))));
  });
  drawOverview();
  draw();
}

// Everything that depends on the selected layer and heads.
function draw() {
  const { kind, layer, heads } = state;
  const all = view.weights[layer].length;
  const shown = heads.length === all && all > 1 ? `all ${all} heads`
    : `head${heads.length > 1 ? "s" : ""} ${heads.map((head) => head + 1).join(", ")} of ${all}`;
  const cut = given.source_labels.length >= given.readAtMost
    ? ` The source is truncated to ${given.readAtMost} subwords, the model's limit.` : "";
  $("caption").textContent =
    `${KINDS[kind][1]}, layer ${layer + 1} of ${view.weights.length}, ${shown}.`;
  $("reading").textContent = (heads.length > 1 ? "Colours stand for heads, numbers are their means. " : "") +
    `A line's opacity is its weight.${cut}`;
  const head = heads.length === 1 ? heads[0] : heads.length === all ? "all" : null;
  for (const input of $("controls").querySelectorAll("input")) {
    input.checked = input.value === `${{ kind, layer, head }[input.name]}`;
  }
  for (const tile of $("overview").children) {
    const pressed = +tile.dataset.layer === layer && heads.includes(+tile.dataset.head);
    tile.setAttribute("aria-pressed", pressed);
  }
  drawHeat();
  mark();
}

function drawHeat() {
  const weights = view.queries.map((_, q) => view.keys.map((_, k) => mean(q, k)));
  const largest = Math.max(...weights.map((row) => Math.max(...row))) || 1;
  const heading = (side) => (text, i) => element("th", { scope: side === "keys" ? "col" : "row",
    "data-side": side, "data-index": i, title: text }, element("span", {}, text));
  const cell = (w) => {
    const made = element("td", {}, w < 0.05 ? "" : w.toFixed(2).replace(/^0|\.00$/, ""));
    made.style.setProperty("--weight", w / largest);
    return made;
  };
  const rows = view.queries.map(heading("queries")).map((name, q) =>
    element("tr", { "data-side": "queries", "data-index": q }, name, ...weights[q].map(cell)));
  $("heat").replaceChildren(
    element("thead", {}, element("tr", {}, element("td"), ...view.keys.map(heading("keys")))),
    element("tbody", {}, ...rows));
  const { heads } = state;
  $("heat").style.setProperty("--tint", heads.length > 1 ? "var(--quiet)" : colour(heads[0]));
  $("heat-caption").textContent = "Rows attend to columns. " +
    `${heads.length > 1 ? "Means of the heads" : "Weights"} of at least 0.05 are shown.`;
}

// Everything that depends on the isolated subword: lines, and boxes and numbers at linked subwords.
function mark() {
  const { heads, side, index, held } = state;
  // Lines of an isolated subword end side by side, so that no colour hides another.
  const spread = side === null ? 0 : Math.min(0.1, 0.6 / heads.length);
  $("links").innerHTML = heads.map((head, n) => {
    const aside = 0.5 + (n - (heads.length - 1) / 2) * spread;
    const [from, to] = [side === "queries" ? 0.5 : aside, side === "keys" ? 0.5 : aside];
    return `<g>${view.queries.flatMap((_, q) => view.keys.map((_, k) => {
      const w = weight(head, q, k);
      const hidden = w < FAINT || ![null, side === "queries" ? q : k].includes(index);
      return hidden ? "" : `<line x2="1" y1="${q + from}" y2="${k + to}" opacity="${w}"/>`;
    })).join("")}</g>`;
  }).join("");
  [...$("links").children].forEach((lines, n) => { lines.style.stroke = colour(heads[n]); });
  const length = Math.max(view.queries.length, view.keys.length);
  $("links").setAttribute("viewBox", `0 0 1 ${length}`);
  $("links").style.setProperty("--length", length);
  $("lines").classList.toggle("isolated", side !== null);
  for (const place of root.querySelectorAll("[data-side]")) {
    const here = place.dataset.side === side && +place.dataset.index === index;
    place.classList.toggle("here", here);
    if (place.tagName !== "BUTTON") continue;
    const tied = ![null, place.dataset.side].includes(side);
    const [q, k] = side === "keys" ? [place.dataset.index, index] : [index, place.dataset.index];
    const weights = tied ? heads.map((head) => weight(head, q, k)) : [];
    const boxes = weights.map((w, n) => `${colour(heads[n], 0.63 * w)} ` +
      `${(100 * n) / heads.length}% ${(100 * (n + 1)) / heads.length}%`);
    place.style.background = tied ? `linear-gradient(to right, ${boxes})` : "";
    place.setAttribute("aria-pressed", held && here);
    const average = sum(weights) / heads.length;
    if (average >= FAINT) place.parentNode.dataset.weight = average.toFixed(2);
    else delete place.parentNode.dataset.weight;
  }
}

function drawOverview() {
  const measure = Object.keys(given.measures).indexOf(state.order);
  $("ordering").hidden = !given.summary;
  $("meaning").textContent = measure < 0 ? "" : `Largest first: ${given.measures[state.order]}.`;
  const tiles = view.weights.flatMap((heads, layer) => heads.map((rows, head) => {
    const canvas = element("canvas", { width: view.keys.length, height: view.queries.length });
    const context = canvas.getContext("2d"); // black, which the style sheet inverts on a dark page
    rows.forEach((row, q) => row.forEach((w, k) => {
      context.globalAlpha = Math.min(1, w);
      context.fillRect(k, q, 1, 1);
    }));
    const number = given.summary?.[view.field][layer * heads.length + head][measure];
    const name = `${layer + 1}.${head + 1}${measure < 0 ? "" : `: ${number.toFixed(2)}`}`;
    const tile = element("button", { type: "button", "data-layer": layer, "data-head": head,
      "aria-label": `Layer ${layer + 1}, head ${head + 1}` }, canvas, name);
    return Object.assign(tile, { number });
  }));
  if (measure >= 0) tiles.sort((a, b) => b.number - a.number);
  $("overview").style.setProperty("--heads", view.weights[0].length);
  $("overview").replaceChildren(...tiles);
}

// ---- Choosing

function makeControls() {
  const fill = (id, name, choices) => $(id).append(...choices.map(([value, label]) => element(
    "label", { class: "choice" }, element("input", { type: "radio", name, value }), label)));
  const numbers = (items) => items.map((_, i) => [i, i + 1]);
  const shown = Object.entries(KINDS).filter(([, [field]]) => given[field].length); // SSRUs have none
  fill("kinds", "kind", shown.map(([kind, [, title]]) => [kind, title]));
  fill("layers", "layer", numbers(view.weights));
  fill("heads", "head", [...numbers(view.weights[0]), ["all", "all"]]);
  $("order").append(...Object.keys(given.measures).map((name) => element("option", {}, name)));
}

function answerChange({ target: { name, value } }) {
  if (name === "layer") state.layer = +value;
  if (name === "head") state.heads = value === "all" ? [...view.weights[0].keys()] : [+value];
  if (name === "order") state.order = value;
  if (name === "kind") {
    letGo();
    state.kind = value;
  }
  drawAll();
}

// A click on one of all heads shows it, alone or with others in its layer.
function chooseTile(tile, add) {
  const [layer, head] = [+tile.dataset.layer, +tile.dataset.head];
  const before = new Set(add && layer === state.layer ? state.heads : []);
  const heads = [...before.symmetricDifference(new Set([head]))].sort((a, b) => a - b);
  Object.assign(state, { layer, heads: heads.length ? heads : [head] });
  draw();
}

// ---- Pointer and keyboard

function letGo() {
  Object.assign(state, { side: null, index: null, held: false });
}

function placeOf(target) {
  const found = target.closest("[data-side]")?.dataset;
  return found ? { side: found.side, index: +found.index } : { side: null, index: null };
}

// A click pins a subword, or releases it; pointing has no effect meanwhile.
function isolate(target, click = false) {
  const place = placeOf(target);
  const same = place.side === state.side && place.index === state.index;
  if (click ? place.side === null : state.held || same) return;
  if (click && state.held && same) letGo();
  else Object.assign(state, place, { held: click });
  mark();
}

// Arrow keys move along the subwords on a side, and across to the other.
function moveFocus(event) {
  const { side, index } = placeOf(event.target);
  const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: 0, ArrowRight: 0 }[event.key];
  if (side === null || step === undefined) return;
  event.preventDefault();
  const items = $({ ArrowLeft: "queries", ArrowRight: "keys" }[event.key] ?? side).children;
  items[Math.min(Math.max(index + step, 0), items.length - 1)].firstChild.focus();
}

function answerEvents() {
  root.addEventListener("change", answerChange);
  root.addEventListener("click", ({ target, shiftKey }) => {
    const tile = target.closest("[data-head]");
    if (tile) chooseTile(tile, shiftKey);
    isolate(target, true);
  });
  root.addEventListener("keydown", moveFocus);
  root.addEventListener("pointerover", ({ target }) => isolate(target));
  root.addEventListener("pointerleave", () => isolate(root));
  root.addEventListener("focusin", ({ target }) => isolate(target));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    letGo();
    mark();
  });
}
