// The figures of attention_page.html. Layers, heads and words are counted from 0, shown from 1.

const PITCH = 20; // pixels from word to word, as in the style sheet
const GAP = 190; // pixels between the two sides, on a screen that has room
const MARGIN = 6; // pixels between the heat map and its words
const BETWEEN = 56; // pixels between the lines and the heat map
const FAINT = 0.01; // lines of less weight would not be seen
const COLUMNS = { // what a column of the table means
  entropy: "of the weights, in nats (0 where all goes to one word, log n where n share it)",
  distance: "|i − j| from the word's place i to the place j attended to, in words",
  diagonal: "share of the weight at j = i",
  previous: "share at j = i − 1",
  following: "share at j = i + 1",
  boundary: "share of </s>, or of <s> in decoder self-attention",
  punctuation: "share of marks without letter or digit",
};
const SIDES = {
  encoder: ["Each word on the left attends to the words on the right.", ""],
  decoder: [
    "Each word on the left, when it was predicted, attended to the words written before it, on " +
      "the right.",
    " Place i holds the last word written when word i is predicted.",
  ],
  memory: [
    "Each word of the translation on the left, when it was predicted, attended to the source " +
      "words on the right.",
    " Word i of Q stands at place i (P − 1) / (Q − 1) of the P source words.",
  ],
};

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const shownHeads = () => (state.glimpse !== null ? [state.glimpse]
  : [...state.heads].sort((a, b) => a - b));
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const width = () => document.querySelector("main").clientWidth;
const isolated = () => state.query !== null || state.key !== null;

// The colour of a head, lighter on a dark page: "#rrggbb".
function colour(head) {
  const given = data.colours[head % data.colours.length];
  const lighter = (part) => Math.round(255 - (255 - parseInt(part, 16)) * 0.7);
  return dark.matches ? given.replace(/[0-9a-f]{2}/g, (part) => lighter(part).toString(16)) : given;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A canvas of so many CSS pixels, sharp on any screen, empty.
function cleared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

// ---- The lines between the words

function drawLines() {
  const { view, layer, query, key, rows } = state;
  const length = PITCH * Math.max(view.queries.length, view.keys.length);
  const gap = rows ? GAP : Math.round(Math.min(GAP, 0.3 * width()));
  const context = cleared($("links"), ...(rows ? [length, gap] : [gap, length]));
  context.lineWidth = 2;
  let drawn = 0;
  const heads = shownHeads();
  // Lines of an isolated word end side by side, lest one colour hide the others.
  const spread = isolated() ? Math.min(2, 12 / heads.length) : 0;
  heads.forEach((head, n) => {
    const aside = (n - (heads.length - 1) / 2) * spread;
    context.strokeStyle = colour(head);
    for (let q = 0; q < view.queries.length; q++) {
      for (let k = 0; k < view.keys.length; k++) {
        if ((query !== null && q !== query) || (key !== null && k !== key)) continue;
        const w = weight(view, layer, head, q, k);
        if (w < FAINT) continue;
        const from = (q + 0.5) * PITCH + (query === null ? aside : 0);
        const to = (k + 0.5) * PITCH + (key === null ? aside : 0);
        context.globalAlpha = w;
        context.beginPath();
        if (rows) { // queries below
          context.moveTo(from, gap);
          context.lineTo(to, 0);
        } else {
          context.moveTo(0, from);
          context.lineTo(gap, to);
        }
        context.stroke();
        drawn++;
      }
    }
  });
  $("links").dataset.lines = drawn;
}

// The isolated word is bold; the words it is tied to have a box for each head, as in Figure 3.
function markWords() {
  const { view, layer, query, key } = state;
  $("lines").classList.toggle("isolated", isolated());
  const heads = shownHeads();
  for (const [side, here] of [["queries", query], ["keys", key]]) {
    const other = side === "queries" ? key : query;
    [...$(side).children].forEach((item, i) => {
      const button = item.firstChild;
      button.classList.toggle("here", i === here);
      button.setAttribute("aria-pressed", state.held && i === here);
      const weights = here === null && other !== null ? heads.map((head) =>
        side === "queries" ? weight(view, layer, head, i, other)
          : weight(view, layer, head, other, i)) : [];
      button.classList.toggle("lit", Math.max(0, ...weights) >= 0.1);
      const stops = weights.map((w, n) => {
        const tint = colour(heads[n]) + Math.round(w * 160).toString(16).padStart(2, "0");
        return `${tint} ${(100 * n) / heads.length}% ${(100 * (n + 1)) / heads.length}%`;
      });
      button.style.background = stops.length ? `linear-gradient(to right, ${stops})` : "";
    });
  }
}

function makeWords() {
  for (const side of ["queries", "keys"]) {
    $(side).replaceChildren(...state.view[side].map((word, i) => {
      const button = element("button", { type: "button", "data-index": i, title: word,
        tabindex: i ? -1 : 0 }, word);
      return element("li", {}, button);
    }));
    $(side).setAttribute("aria-label", side === "queries" ? "Words that attend"
      : "Words attended to");
  }
  $("lines").classList.toggle("rows", state.rows);
}

// ---- The heat map beside them

let cell = PITCH; // pixels a weight
let corner = [0, 0]; // where the first weight is drawn
let largest = 0; // the largest weight drawn

function drawHeat() {
  const { view, layer, query, key } = state;
  const [q, k] = [view.queries.length, view.keys.length];
  const heads = shownHeads();
  const font = (size) => `${size}px ${style("--sans")}`;
  const beside = width() - $("lines").offsetWidth - BETWEEN;
  const room = Math.min(900, beside > 400 ? beside : width()) - 110;
  cell = Math.max(3, Math.min(PITCH, Math.floor(room / k)));
  const size = cell >= 9 ? Math.min(13, cell - 1) : 0; // smaller words could not be read
  const measure = $("heat").getContext("2d");
  measure.font = font(size || 1);
  const longest = (words) => size && Math.min(100, Math.ceil(
    Math.max(...words.map((word) => measure.measureText(word).width))));
  corner = [longest(view.queries) + MARGIN, longest(view.keys) + MARGIN];
  const context = cleared($("heat"), corner[0] + k * cell + 1, corner[1] + q * cell + 1);
  const ink = style("--ink");
  context.font = font(size || 1);
  context.textBaseline = "middle";
  if (size) {
    const write = (word, x, y, align, angle, here) => {
      context.save();
      context.translate(x, y);
      context.rotate(angle);
      context.textAlign = align;
      context.fillStyle = here || !isolated() ? ink : style("--quiet");
      context.fillText(word, 0, 0, 100);
      context.restore();
    };
    view.queries.forEach((word, i) =>
      write(word, corner[0] - MARGIN, corner[1] + (i + 0.5) * cell, "right", 0, i === query));
    view.keys.forEach((word, i) =>
      write(word, corner[0] + (i + 0.5) * cell, corner[1] - MARGIN, "left", -Math.PI / 2,
        i === key));
  }
  context.fillStyle = heads.length === 1 ? colour(heads[0]) : ink;
  const weights = view.queries.map((_, i) => view.keys.map((_, j) => mean(heads, i, j)));
  largest = weights.flat().reduce((a, b) => Math.max(a, b), 0);
  for (let i = 0; i < q; i++) {
    for (let j = 0; j < k; j++) {
      context.globalAlpha = weights[i][j] / (largest || 1);
      context.fillRect(corner[0] + j * cell, corner[1] + i * cell, cell, cell);
    }
  }
  context.globalAlpha = 1;
  context.strokeStyle = style("--rule");
  context.strokeRect(corner[0] - 0.5, corner[1] - 0.5, k * cell + 1, q * cell + 1);
  context.strokeStyle = style("--accent");
  if (query !== null) context.strokeRect(corner[0] - 0.5, corner[1] + query * cell - 0.5,
    k * cell + 1, cell + 1);
  if (key !== null) context.strokeRect(corner[0] + key * cell - 0.5, corner[1] - 0.5, cell + 1,
    q * cell + 1);
}

const mean = (heads, q, k) => (heads.length ? heads.reduce(
  (sum, head) => sum + weight(state.view, state.layer, head, q, k), 0) / heads.length : 0);

// ---- What is said of the pictures

const listed = (heads) => (heads.length > 1 && heads.length === state.view.heads ? `all ${heads.length} heads`
  : `head${heads.length > 1 ? "s" : ""} ${heads.map((head) => head + 1).join(", ") || "none"}`);

function describe() {
  const { view, layer, query, key } = state;
  const heads = shownHeads();
  const place = `${view.title}, layer ${layer + 1} of ${view.layers}, ${listed(heads)}`;
  const sides = state.rows ? SIDES[view.kind][0].replace("on the left", "below")
    .replace("on the right", "above") : SIDES[view.kind][0];
  $("caption").replaceChildren(element("b", {}, `${place}.`),
    ` ${sides} Colours are heads; a line is as opaque as its weight.`);
  $("heat-caption").textContent = `Queries downwards, keys across; ` +
    `${heads.length > 1 ? "means of the heads" : "weights"}, of which the largest is ` +
    `${largest.toFixed(2)}.`;
  $("links").setAttribute("aria-label", `Lines between words: ${place}`);
  $("heat").setAttribute("aria-label", `Heat map: ${place}`);
  const apart = (word) => `\u2068${word}\u2069`; // whichever way it is written
  const strongest = (words, weights) => words.map((word, i) => [word, weights[i]])
    .sort((a, b) => b[1] - a[1]).slice(0, 5).filter(([, w]) => w >= FAINT)
    .map(([word, w]) => `${apart(word)} ${w.toFixed(2)}`).join(", ") || "nothing";
  const average = heads.length > 1 ? ` (mean of ${heads.length} heads)` : "";
  let said = "Point at a word or a square to isolate it; click to keep it, Escape to let go.";
  if (query !== null && key !== null) {
    const each = heads.map((head) =>
      `${head + 1}: ${weight(view, layer, head, query, key).toFixed(2)}`).join(", ");
    said = `${apart(view.queries[query])} → ${apart(view.keys[key])}, by head: ${each}`;
  } else if (query !== null) {
    said = `${apart(view.queries[query])} → ` +
      strongest(view.keys, view.keys.map((_, i) => mean(heads, query, i))) + average;
  } else if (key !== null) {
    said = `${apart(view.keys[key])} ← ` +
      strongest(view.queries, view.queries.map((_, i) => mean(heads, i, key))) + average;
  }
  if ($("readout").textContent !== said) $("readout").textContent = said;
}

// ---- All heads: small multiples and table

function drawOverview() {
  const { view } = state;
  const [q, k] = [view.queries.length, view.keys.length];
  const ink = inkBytes();
  const cells = [element("span")];
  for (let head = 0; head < view.heads; head++) cells.push(element("span", {}, `${head + 1}`));
  for (let layer = 0; layer < view.layers; layer++) {
    cells.push(element("span", {}, `${layer + 1}`));
    for (let head = 0; head < view.heads; head++) {
      const canvas = element("canvas", { width: k, height: q });
      const context = canvas.getContext("2d");
      const image = context.createImageData(k, q);
      for (let i = 0; i < q * k; i++) {
        image.data.set(ink, 4 * i);
        image.data[4 * i + 3] = 255 * weight(view, layer, head, Math.floor(i / k), i % k);
      }
      context.putImageData(image, 0, 0);
      cells.push(element("button", { type: "button", "data-layer": layer, "data-head": head,
        "aria-label": `Layer ${layer + 1}, head ${head + 1}`,
        title: `Layer ${layer + 1}, head ${head + 1}` }, canvas));
    }
  }
  $("overview").style.gridTemplateColumns = `1.5em repeat(${view.heads}, minmax(0, 9rem))`;
  $("overview").replaceChildren(...cells);
}

function inkBytes() {
  const context = element("canvas", { width: 1, height: 1 }).getContext("2d");
  context.fillStyle = style("--ink");
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

function makeTable() {
  const { view, sort, down } = state;
  const rows = view.summary.map((numbers, i) => ({ numbers, layer: Math.floor(i / view.heads),
    head: i % view.heads, place: i }));
  if (sort !== null) {
    rows.sort((a, b) => (down ? -1 : 1) * (a.numbers[sort] - b.numbers[sort]) || a.place - b.place);
  }
  $("columns").replaceChildren(...[null, ...data.columns.keys()].map((column) => {
    const name = column === null ? "head" : data.columns[column];
    const way = column !== sort ? "none" : down && sort !== null ? "descending" : "ascending";
    return element("th", { scope: "col", "aria-sort": way }, element("button", { type: "button",
      "data-column": column ?? "", title: COLUMNS[name] ?? "by layer and head" }, name));
  }));
  $("summary").replaceChildren(...rows.map(({ numbers, layer, head }) => element("tr",
    { "data-layer": layer, "data-head": head },
    element("td", {}, element("button", { type: "button", "data-layer": layer,
      "data-head": head }, `layer ${layer + 1}, head ${head + 1}`)),
    ...numbers.map((number) => element("td", {}, number.toFixed(2))))));
  $("summary-note").textContent = `${view.title}. Numbers are means over the words that attend: ` +
    data.columns.map((name) => `${name}: ${COLUMNS[name]}`).join("; ") +
    `.${SIDES[view.kind][1]} A column's name sorts by it.`;
}

function markChosen() {
  for (const each of document.querySelectorAll("#overview button, #summary tr")) {
    const chosen = +each.dataset.layer === state.layer && state.heads.has(+each.dataset.head);
    each.classList.toggle("here", chosen);
    if (each.tagName === "BUTTON") each.setAttribute("aria-pressed", chosen);
  }
}
