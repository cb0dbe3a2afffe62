// The attention figure: lines between words, a heat map, all heads, and the choice among them.
// The served page imports this file, and every offline page holds it: see showAttention.
// Layers, heads and words are counted from 0 and shown from 1.

const PITCH = 20; // pixels from word to word, as in the style sheet
const GAP = 190; // pixels between the two sides, on a screen that has room
const FAINT = 0.01; // lines of smaller weight are not drawn
const KINDS = { // field of the answer, title, headings
  cross: ["memory", "Cross-attention", ["Translation", "attends to the source"]],
  encoder: ["encoder", "Encoder self-attention", ["Source", "attends to the source"]],
  decoder: ["decoder", "Decoder self-attention", ["Translation", "attends to earlier words"]],
};
const COLUMNS = { // what a column of the table means
  entropy: "of the weights, in nats (0 where all goes to one subword, log n where n share it)",
  distance: "|i − j| from the place i of the attending subword (scaled to the source's length in " +
    "cross-attention; of the last one written in the decoder) to the place j attended to",
  diagonal: "share of the weight at j = i",
  previous: "share at j = i − 1",
  following: "share at j = i + 1",
  boundary: "share of </s>, or of <s> in decoder self-attention",
  punctuation: "share of marks without letter or digit",
};
const MARKUP = `
<div class="bar">
<form class="controls" id="controls" aria-label="Which attention is drawn">
<fieldset id="kinds"><legend class="unseen">Attention</legend></fieldset>
<fieldset id="layers"><legend>Layer</legend></fieldset>
<fieldset id="heads"><legend>Heads</legend></fieldset>
<fieldset id="units"><legend>Units</legend></fieldset>
<fieldset id="directions"><legend>Words</legend></fieldset>
</form>
<p class="readout" id="readout" aria-live="polite"></p>
</div>
<div class="pictures">
<figure><div class="scroll"><div class="lines" id="lines">
<h3 class="queries"></h3><h3 class="keys"></h3>
<ol class="words queries" id="queries"></ol>
<canvas id="links" role="img"></canvas>
<ol class="words keys" id="keys"></ol>
</div></div><figcaption id="caption"></figcaption></figure>
<figure><div class="scroll"><div id="heat" role="img"></div></div>
<figcaption id="heat-caption"></figcaption></figure>
</div>
<section aria-labelledby="overview-title">
<h2 id="overview-title">All heads</h2>
<p class="note">Layers downwards, heads across; in each square the attending words downwards and the
words attended to across. Choose one to see it alone above.</p>
<div class="overview" id="overview"></div>
</section>
<section aria-labelledby="summary-title" id="numbers">
<h2 id="summary-title">Heads in numbers</h2>
<p class="note" id="summary-note"></p>
<table><thead><tr id="columns"></tr></thead><tbody id="summary"></tbody></table>
</section>`;

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const sum = (values) => values.reduce((total, value) => total + value, 0);
// A head's colour, lighter on a dark page; the printed pictures have the same.
const colour = (head) => `hsl(${(210 + 137.5 * head) % 360} 60% ${style("--lightness")})`;

let root = null; // the element that holds the figure
let given = null; // see showAttention
let view = null; // {queries, keys: words; weights: [N][H][Q][K]} of the chosen kind and units
// query and key: the isolated word of either side, or null; held: whether it was clicked;
// glimpse: the head under the pointer, or null.
const state = { kind: "cross", layer: 0, heads: new Set(), mean: false, units: "words", rows: false,
  query: null, key: null, held: false, glimpse: null, sort: 0, down: true };

/**
 * Draws the figure in `place`; what was chosen before stays chosen. A page has one figure.
 *
 * attention: {source_pieces, target_pieces, encoder, decoder, memory}, as /attention answers;
 * options: {readAtMost: subwords that the model reads of a source,
 *           columns: names, summary: {encoder, decoder, memory: a row of numbers for each head}}
 */
export function showAttention(place, attention, options = {}) {
  const first = root === null;
  given = { readAtMost: Infinity, summary: null, ...options, attention };
  letGo();
  if (first) {
    root = place;
    root.innerHTML = MARKUP;
    readAddress();
    makeControls();
    answerControls();
    answerPictures();
    answerTables();
  } else {
    makeView();
  }
  makeAll();
}

// ---- Words

const SPECIAL = /^<(\/?s|unk|pad)>$/;
const PUNCTUATION = /^\u2581?(?!\u2581)[\p{P}\p{S}]+$/u;
const INSIDE_WORDS = /^['\u2019\u2010-]$/;

/**
 * Joins subwords to words, and gives [{text, pieces: [position, ...]}, ...].
 * Punctuation stands alone; `apart` leaves every subword so.
 */
export function joinPieces(pieces, apart = false) {
  const marked = pieces.some((piece) => piece.startsWith("\u2581")); // SentencePiece
  const begins = (piece) => (marked ? piece.startsWith("\u2581") : !piece.startsWith("##"));
  const alone = (piece) =>
    SPECIAL.test(piece) || (PUNCTUATION.test(piece) && !INSIDE_WORDS.test(piece));
  const words = [];
  pieces.forEach((piece, i) => {
    if (i === 0 || apart || begins(piece) || alone(piece) || alone(pieces[i - 1])) {
      words.push({ text: "", pieces: [] });
    }
    words.at(-1).text += piece;
    words.at(-1).pieces.push(i);
  });
  if (!apart) for (const word of words) word.text = readable(word.text, marked);
  return words;
}

function readable(raw, marked) {
  const text = marked ? raw.replaceAll("\u2581", " ") : raw.replaceAll("##", "");
  const bytes = (run) => Uint8Array.from(run.match(/[0-9A-F]{2}(?=>)/g), (x) => parseInt(x, 16));
  const decoded = (run) => new TextDecoder().decode(bytes(run));
  return text.replace(/(?:<0x[0-9A-F]{2}>)+/g, decoded).trim() || "\u2423";
}

/** Weights of words from those [Q, K] of pieces: the sum over a key's, the mean over a query's. */
function joinWeights(weights, queries, keys) {
  return queries.map(({ pieces }) => keys.map((key) =>
    sum(pieces.map((q) => sum(key.pieces.map((k) => weights[q][k])))) / pieces.length));
}

/** What the decoder reads: the target, one position later, behind the beginning of the sentence. */
function wordsRead(target, length) {
  const later = target.map(({ text, pieces }) =>
    ({ text, pieces: pieces.map((i) => i + 1).filter((i) => i < length) }));
  return [{ text: "<s>", pieces: [0] }, ...later.filter(({ pieces }) => pieces.length)];
}

function makeView() {
  const { attention } = given;
  const [source, target] = ["source_pieces", "target_pieces"].map((side) =>
    joinPieces(attention[side], state.units === "subwords"));
  const [queries, keys] = { cross: [target, source], encoder: [source, source],
    decoder: [target, wordsRead(target, attention.target_pieces.length)] }[state.kind];
  const weights = attention[KINDS[state.kind][0]].map((heads) =>
    heads.map((head) => joinWeights(head, queries, keys)));
  view = { queries, keys, weights };
}

const numHeads = () => view.weights[0].length;
const shownHeads = () => (state.glimpse !== null ? [state.glimpse]
  : [...state.heads].sort((a, b) => a - b));
const isolated = () => state.query !== null || state.key !== null;
const weight = (head, q, k) => view.weights[state.layer][head][q][k];
const mean = (heads, q, k) => sum(heads.map((head) => weight(head, q, k))) / (heads.length || 1);

// What is drawn in a colour each: the chosen heads, or their mean.
function series() {
  const heads = shownHeads();
  if (state.mean && heads.length > 1) {
    return [{ colour: style("--accent"), weight: (q, k) => mean(heads, q, k) }];
  }
  return heads.map((head) => ({ colour: colour(head), weight: (q, k) => weight(head, q, k) }));
}

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

// A canvas of that many CSS pixels, sharp on any screen, empty.
function cleared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

function makeWords() {
  for (const [n, side, name] of [[0, "queries", "query"], [1, "keys", "key"]]) {
    const heading = KINDS[state.kind][2][n];
    root.querySelector(`h3.${side}`).textContent = heading;
    $(side).setAttribute("aria-label", heading);
    $(side).replaceChildren(...view[side].map(({ text }, i) => element("li", {}, element("button",
      { type: "button", [`data-${name}`]: i, title: text, tabindex: i ? -1 : 0 }, text))));
  }
  $("lines").classList.toggle("rows", state.rows);
}

function drawLines() {
  const { query, key, rows } = state;
  const length = PITCH * Math.max(view.queries.length, view.keys.length);
  const gap = rows ? GAP : Math.round(Math.min(GAP, 0.3 * root.clientWidth));
  const context = cleared($("links"), ...(rows ? [length, gap] : [gap, length]));
  context.lineWidth = 2;
  let drawn = 0;
  const all = series();
  // Lines of an isolated word end side by side, so that no colour hides another.
  const spread = isolated() ? Math.min(2, 12 / all.length) : 0;
  all.forEach((one, n) => {
    const aside = (n - (all.length - 1) / 2) * spread;
    context.strokeStyle = one.colour;
    view.queries.forEach((_, q) => view.keys.forEach((_, k) => {
      if ((query !== null && q !== query) || (key !== null && k !== key)) return;
      context.globalAlpha = Math.min(1, one.weight(q, k));
      if (context.globalAlpha < FAINT) return;
      const from = (q + 0.5) * PITCH + (query === null ? aside : 0);
      const to = (k + 0.5) * PITCH + (key === null ? aside : 0);
      context.beginPath();
      context.moveTo(...(rows ? [from, gap] : [0, from])); // in rows, queries are below
      context.lineTo(...(rows ? [to, 0] : [gap, to]));
      context.stroke();
      drawn++;
    }));
  });
  $("links").dataset.lines = drawn;
}

// The isolated word is bold; the words it is tied to have a box for each head, as in Figure 3.
function markWords() {
  $("lines").classList.toggle("isolated", isolated());
  const all = series();
  for (const [side, here, other] of [["queries", state.query, state.key],
    ["keys", state.key, state.query]]) {
    [...$(side).children].forEach((item, i) => {
      const weights = here !== null || other === null ? [] : all.map((one) =>
        side === "queries" ? one.weight(i, other) : one.weight(other, i));
      const stops = weights.map((w, n) => `color-mix(in srgb, ${all[n].colour} ${63 * w}%, ` +
        `transparent) ${(100 * n) / all.length}% ${(100 * (n + 1)) / all.length}%`);
      const button = item.firstChild;
      button.classList.toggle("here", i === here);
      button.classList.toggle("lit", Math.max(0, ...weights) >= 0.1);
      button.setAttribute("aria-pressed", state.held && i === here);
      button.style.background = stops.length ? `linear-gradient(to right, ${stops})` : "";
    });
  }
}

function makeHeat() {
  const label = (side, { text }, i) => element("span", { [`data-${side}`]: i }, text);
  $("heat").replaceChildren(element("span"), ...view.keys.map((word, k) => label("key", word, k)),
    ...view.queries.flatMap((word, q) => [label("query", word, q),
      ...view.keys.map((_, k) => element("i", { "data-query": q, "data-key": k }))]));
}

let largest = 0; // the largest weight in the heat map

function drawHeat() {
  const heads = shownHeads();
  const columns = view.keys.length;
  const beside = root.clientWidth - $("lines").offsetWidth - 56;
  const room = Math.min(900, beside > 400 ? beside : root.clientWidth) - 110;
  const cell = Math.max(3, Math.min(PITCH, Math.floor(room / columns)));
  $("heat").style.setProperty("--cell", `${cell}px`);
  $("heat").style.gridTemplateColumns = `max-content repeat(${columns}, ${cell}px)`;
  $("heat").classList.toggle("wordless", cell < 9); // smaller words could not be read
  const tint = heads.length === 1 ? colour(heads[0]) : style("--ink");
  const weights = view.queries.flatMap((_, q) => view.keys.map((_, k) => mean(heads, q, k)));
  largest = weights.reduce((a, b) => Math.max(a, b), 0);
  $("heat").querySelectorAll("i").forEach((each, i) => {
    each.style.background =
      `color-mix(in srgb, ${tint} ${(100 * weights[i]) / (largest || 1)}%, transparent)`;
  });
  for (const each of $("heat").children) {
    each.classList.toggle("row", each.dataset.query === `${state.query}`);
    each.classList.toggle("column", each.dataset.key === `${state.key}`);
  }
}

// ---- What is said of the pictures

function listed(heads) {
  const all = numHeads();
  if (heads.length === all) return all > 1 ? `all ${all} heads` : "its only head";
  const numbers = heads.map((head) => head + 1).join(", ") || "none";
  return `head${heads.length > 1 ? "s" : ""} ${numbers} of ${all}`;
}

function describe() {
  const heads = shownHeads();
  const averaged = state.mean && heads.length > 1;
  const place = `${KINDS[state.kind][1]}, layer ${state.layer + 1} of ${view.weights.length}, ` +
    `${averaged ? "mean of " : ""}${listed(heads)}`;
  const cut = given.attention.source_pieces.length >= given.readAtMost
    ? ` The source is cut after ${given.readAtMost} subwords, the most that the model reads.` : "";
  $("caption").replaceChildren(element("b", {}, `${place}.`),
    `${averaged ? "" : " Colours are heads."} A line is as opaque as its weight.${cut}`);
  $("heat-caption").textContent = "Attending words downwards, words attended to across; " +
    `${heads.length > 1 ? "means of the heads" : "weights"}, of which the largest is ` +
    `${largest.toFixed(2)}.`;
  $("links").setAttribute("aria-label", `Lines between words: ${place}`);
  $("heat").setAttribute("aria-label", `Heat map: ${place}`);
  const said = readout(heads);
  if ($("readout").textContent !== said) $("readout").textContent = said;
}

function readout(heads) {
  const { query, key } = state;
  const shown = ({ text }) => `\u2068${text}\u2069`; // whichever way it is written
  const strongest = (words, weightOf) => words.map((word, i) => [shown(word), weightOf(i)])
    .sort((a, b) => b[1] - a[1]).slice(0, 5).filter(([, w]) => w >= FAINT)
    .map(([word, w]) => `${word} ${w.toFixed(2)}`).join(", ") || "nothing";
  const average = heads.length > 1 ? ` (mean of ${heads.length} heads)` : "";
  const [from, to] = [view.queries[query ?? -1], view.keys[key ?? -1]].map((w) => w && shown(w));
  if (from && to) {
    return `${from} → ${to}, by head: ` +
      heads.map((head) => `${head + 1}: ${weight(head, query, key).toFixed(2)}`).join(", ");
  }
  const strong = from ? strongest(view.keys, (k) => mean(heads, query, k))
    : to && strongest(view.queries, (q) => mean(heads, q, key));
  const verb = from ? "attends to" : "is attended to by";
  if (strong) return `${from ?? to} ${verb} ${strong}${average}`;
  return "Point at a word or a square to isolate it, or go there with the arrow keys; " +
    "click to keep it, Escape to let go.";
}

// ---- All heads: small multiples and table

const headButton = (layer, head, ...children) => element("button", { type: "button",
  "data-layer": layer, "data-head": head,
  "aria-label": `Layer ${layer + 1}, head ${head + 1}` }, ...children);

function drawOverview() {
  const cells = [element("span")];
  for (let head = 0; head < numHeads(); head++) cells.push(element("span", {}, `${head + 1}`));
  view.weights.forEach((heads, layer) => {
    cells.push(element("span", {}, `${layer + 1}`));
    heads.forEach((rows, head) => {
      const canvas = element("canvas", { width: view.keys.length, height: view.queries.length });
      const context = canvas.getContext("2d");
      context.fillStyle = style("--ink");
      rows.forEach((row, q) => row.forEach((w, k) => {
        context.globalAlpha = Math.min(1, w);
        context.fillRect(k, q, 1, 1);
      }));
      cells.push(headButton(layer, head, canvas));
    });
  });
  $("overview").style.gridTemplateColumns = `1.5em repeat(${numHeads()}, minmax(0, 9rem))`;
  $("overview").replaceChildren(...cells);
}

function makeTable() {
  const { columns, summary } = given;
  $("numbers").hidden = !summary;
  if (!summary) return;
  const { sort, down, kind: [field, title] } = { ...state, kind: KINDS[state.kind] };
  const rows = summary[field].map((numbers, i) => ({ numbers, i }));
  const sign = down ? -1 : 1;
  if (sort) rows.sort((a, b) => sign * (a.numbers[sort - 1] - b.numbers[sort - 1]) || a.i - b.i);
  const way = (column) => (column !== sort ? "none" : sort && down ? "descending" : "ascending");
  $("columns").innerHTML = ["head", ...columns].map((name, i) => `<th scope="col"
    aria-sort="${way(i)}"><button type="button" data-column="${i}">${name}</button></th>`).join("");
  $("summary").replaceChildren(...rows.map(({ numbers, i }) => {
    const [layer, head] = [Math.floor(i / numHeads()), i % numHeads()];
    const name = headButton(layer, head, `layer ${layer + 1}, head ${head + 1}`);
    return element("tr", { "data-layer": layer, "data-head": head }, element("td", {}, name),
      ...numbers.map((x, n) => element("td", { "data-name": columns[n] }, x.toFixed(2))));
  }));
  $("summary-note").textContent = `${title}. Numbers are means over the subwords that attend: ` +
    columns.map((name) => `${name}: ${COLUMNS[name]}`).join("; ") + ". Column names sort.";
}

function markChosen() {
  for (const each of root.querySelectorAll("#overview button, #summary tr")) {
    const chosen = +each.dataset.layer === state.layer && state.heads.has(+each.dataset.head);
    each.classList.toggle("here", chosen);
    if (each.tagName === "BUTTON") each.setAttribute("aria-pressed", chosen);
  }
}

// ---- Controls

function makeControls() {
  const fill = (id, type, name, labels) => $(id).append(...labels.map(([value, label]) =>
    element("label", { class: `choice ${name}` }, element("input", { type, name, value }), label)));
  const numbers = (items) => items.map((_, i) => [i, `${i + 1}`]);
  fill("kinds", "radio", "kind", Object.entries(KINDS).map(([kind, [, title]]) => [kind, title]));
  fill("layers", "radio", "layer", numbers(view.weights));
  fill("heads", "checkbox", "head", numbers(view.weights[0]));
  $("heads").append(...["all", "none"].map((id) => element("button", { type: "button", id }, id)));
  fill("heads", "checkbox", "mean", [["", "their mean"]]);
  fill("units", "radio", "units", [["words", "words"], ["subwords", "subwords"]]);
  fill("directions", "radio", "rows", [["", "in columns"], ["1", "in rows"]]);
  root.querySelectorAll(".choice.head").forEach((label, head) => {
    label.style.setProperty("--hue", (210 + 137.5 * head) % 360);
    label.title = "Double-click for this head alone";
  });
}

function checkControls() {
  const { kind, layer, heads, mean, units, rows } = state;
  const chosen = { kind: [kind], layer: [`${layer}`], head: [...heads].map(String),
    mean: mean ? [""] : [], units: [units], rows: [rows ? "1" : ""] };
  for (const input of $("controls").querySelectorAll("input")) {
    input.checked = chosen[input.name].includes(input.value);
  }
}

function readControls() {
  const form = new FormData($("controls"));
  const { kind, units } = state;
  Object.assign(state, { kind: form.get("kind"), units: form.get("units"), mean: form.has("mean"),
    rows: form.get("rows") === "1", layer: +form.get("layer"),
    heads: new Set(form.getAll("head").map(Number)) });
  if (kind !== state.kind || units !== state.units) {
    letGo();
    makeView();
    makeAll();
  } else {
    makeWords();
    draw();
  }
}

function choose(layer, heads) {
  Object.assign(state, { layer, heads: new Set(heads), glimpse: null });
  draw();
}

function letGo() {
  Object.assign(state, { query: null, key: null, held: false });
}

function makeAll() {
  makeWords();
  makeHeat();
  drawOverview();
  makeTable();
  draw();
}

let asked = false;
function draw() {
  if (asked) return; // once a frame is enough
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    checkControls();
    drawLines();
    drawHeat();
    markWords();
    markChosen();
    describe();
    const heads = shownHeads().map((head) => head + 1).join(",");
    const address = `#kind=${state.kind}&layer=${state.layer + 1}&heads=${heads}` +
      (state.mean ? "&mean" : "") + (state.units === "words" ? "" : `&units=${state.units}`) +
      (state.rows ? "&rows" : "") +
      (state.held && state.query !== null ? `&word=${state.query + 1}` : "");
    if (state.glimpse === null && address !== location.hash) {
      history.replaceState(null, "", address);
    }
  });
}

// A page's address may say what to show: #kind=encoder&layer=5&heads=5,6&word=15&rows
function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = (text, count) => (text >= 1 && text <= count ? Math.floor(text) - 1 : null);
  if (wanted.get("kind") in KINDS) state.kind = wanted.get("kind");
  if (wanted.get("units") === "subwords") state.units = "subwords";
  state.rows = wanted.has("rows");
  state.mean = wanted.has("mean");
  makeView();
  const layers = view.weights.length;
  state.layer = number(wanted.get("layer"), layers) ?? layers - 1;
  const heads = (wanted.get("heads") ?? "").split(",").map((text) => number(text, numHeads()));
  state.heads = new Set(wanted.has("heads") ? heads.filter((head) => head !== null)
    : [sharpest(view.weights[state.layer])]);
  state.query = number(wanted.get("word"), view.queries.length);
  state.held = state.query !== null;
}

// ---- Pointer and keyboard

function isolate(query, key, held = false) {
  if (state.held && !held) return;
  if (query === state.query && key === state.key && held === state.held) return;
  Object.assign(state, { query, key, held });
  draw();
}

function hold(query, key) {
  const again = state.held && query === state.query && key === state.key;
  state.held = false;
  isolate(query, key, !again && (query !== null || key !== null));
}

// The place of a word or a square: [query, key], of which either may be null.
function placeOf(event) {
  const { query, key } = event.target.closest("[data-query], [data-key]")?.dataset ?? {};
  return [query === undefined ? null : +query, key === undefined ? null : +key];
}

// Arrow keys go along the words of a side, and across to the other.
function moveFocus(event) {
  const [query, key] = placeOf(event);
  const [back, on] = state.rows ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const across = state.rows ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  if ((query ?? key) === null || ![back, on, ...across].includes(event.key)) return;
  event.preventDefault();
  const items = $((query !== null) === across.includes(event.key) ? "keys" : "queries").children;
  const step = event.key === back ? -1 : event.key === on ? 1 : 0;
  const index = Math.min(Math.max((query ?? key) + step, 0), items.length - 1);
  for (const item of items) item.firstChild.tabIndex = -1;
  items[index].firstChild.tabIndex = 0;
  items[index].firstChild.focus();
}

function answerControls() {
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("controls").addEventListener("change", readControls);
  const headOf = (event) => event.target.closest(".head")?.firstChild.value;
  const glimpse = (head) => {
    state.glimpse = head === undefined ? null : +head;
    draw();
  };
  const heads = $("heads");
  heads.addEventListener("click", (event) => {
    if (event.target.id === "all") choose(state.layer, view.weights[0].keys());
    if (event.target.id === "none") choose(state.layer, []);
  });
  heads.addEventListener("dblclick", (event) => {
    if (headOf(event)) choose(state.layer, [+headOf(event)]);
  });
  heads.addEventListener("pointerover", (event) =>
    glimpse(event.pointerType === "mouse" ? headOf(event) : undefined));
  heads.addEventListener("pointerleave", () => glimpse());
}

function answerPictures() {
  for (const id of ["lines", "heat"]) {
    $(id).addEventListener("pointerover", (event) => isolate(...placeOf(event)));
    $(id).addEventListener("pointerleave", () => isolate(null, null));
    $(id).addEventListener("click", (event) => hold(...placeOf(event)));
  }
  $("lines").addEventListener("focusin", (event) => isolate(...placeOf(event)));
  $("lines").addEventListener("focusout", () => isolate(null, null));
  $("lines").addEventListener("keydown", moveFocus);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    letGo();
    draw();
  });
  dark.addEventListener("change", makeAll);
  addEventListener("resize", draw);
}

function answerTables() {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.head) choose(+button.dataset.layer, [+button.dataset.head]);
    if (button?.dataset.column === undefined) return;
    const column = +button.dataset.column;
    state.down = column !== state.sort || !state.down;
    state.sort = column;
    makeTable();
    markChosen();
    root.querySelector(`[data-column="${column}"]`).focus();
  });
}
