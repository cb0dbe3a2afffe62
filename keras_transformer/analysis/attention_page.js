// What attention_page.html shows, and how it answers; attention_figures.js stands before this.

const data = JSON.parse($("data").textContent);
const levels = await inflated($("weights").textContent);
let first = 0;
for (const view of data.views) {
  view.first = first;
  first += view.layers * view.heads * view.queries.length * view.keys.length;
}
// query and key: the isolated word of either side, or null; held: whether it was clicked;
// glimpse: the head under the pointer, or null.
const state = { view: data.views[0], layer: 0, heads: new Set(), rows: false,
  query: null, key: null, held: false, glimpse: null, sort: null, down: true };

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function weight(view, layer, head, q, k) {
  const map = layer * view.heads + head;
  const level = levels[view.first + (map * view.queries.length + q) * view.keys.length + k];
  return level * view.scales[map];
}

// ---- Controls

function choice(type, name, value, label, checked, attributes = {}) {
  const input = element("input", { type, name, value });
  input.checked = checked;
  return element("label", { class: "choice", ...attributes }, input, label);
}

function fill(id, ...choices) {
  $(id).replaceChildren($(id).querySelector("legend"), ...choices);
}

function makeControls() {
  const { view, layer, heads, rows } = state;
  const numbers = (count) => [...Array(count).keys()];
  fill("kinds", ...data.views.map((each, i) =>
    choice("radio", "kind", i, each.title, each === view)));
  fill("layers", ...numbers(view.layers).map((n) =>
    choice("radio", "layer", n, `${n + 1}`, n === layer)));
  fill("heads", ...numbers(view.heads).map((n) => choice("checkbox", "head", n, `${n + 1}`,
    heads.has(n), { class: "choice head", style: `--colour: ${colour(n)}`,
      title: "Double-click for this head alone" })),
    element("button", { type: "button", id: "all" }, "all"),
    element("button", { type: "button", id: "none" }, "none"));
  fill("directions", choice("radio", "rows", "", "in columns", !rows),
    choice("radio", "rows", "1", "in rows", rows));
}

function readControls() {
  const form = new FormData(document.querySelector("form"));
  const view = data.views[form.get("kind")];
  const [other, turned] = [view !== state.view, (form.get("rows") === "1") !== state.rows];
  Object.assign(state, { view, layer: +form.get("layer"), rows: form.get("rows") === "1",
    heads: new Set(form.getAll("head").map(Number)) });
  if (other) letGo();
  if (other || turned) makeWords();
  if (other) {
    drawOverview();
    makeTable();
  }
  draw();
}

function choose(layer, heads) {
  Object.assign(state, { layer, heads: new Set(heads), glimpse: null });
  for (const input of document.querySelectorAll("#layers input")) {
    input.checked = +input.value === layer;
  }
  for (const input of document.querySelectorAll("#heads input")) {
    input.checked = state.heads.has(+input.value);
  }
  draw();
}

function letGo() {
  Object.assign(state, { query: null, key: null, held: false });
}

let asked = false;
function draw() {
  if (asked) return; // once a frame is enough
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawLines();
    drawHeat();
    markWords();
    markChosen();
    describe();
    const heads = [...state.heads].map((head) => head + 1).join(",");
    const address = `#kind=${state.view.kind}&layer=${state.layer + 1}&heads=${heads}` +
      (state.rows ? "&rows" : "") +
      (state.held && state.query !== null ? `&word=${state.query + 1}` : "");
    if (address !== location.hash) history.replaceState(null, "", address);
  });
}

// A page's address may say what to show: #kind=encoder&layer=5&heads=5,6&word=15&rows
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = (text, count) => (text >= 1 && text <= count ? Math.floor(text) - 1 : null);
  state.view = data.views.find((view) => view.kind === asked.get("kind")) ?? data.views[0];
  const { layers, heads, queries } = state.view;
  state.layer = number(asked.get("layer"), layers) ?? Math.max(0, layers - 2);
  const chosen = (asked.get("heads") ?? "").split(",").map((text) => number(text, heads));
  state.heads = new Set(chosen.filter((head) => head !== null));
  if (!asked.has("heads")) state.heads = new Set(Array(heads).keys());
  state.rows = asked.has("rows");
  state.query = number(asked.get("word"), queries.length);
  state.held = state.query !== null;
}

function isolate(query, key, held = false) {
  if (state.held && !held) return;
  if (query === state.query && key === state.key && held === state.held) return;
  Object.assign(state, { query, key, held });
  draw();
}

function wordOf(event) {
  const button = event.target.closest(".words button");
  if (!button) return null;
  const index = +button.dataset.index;
  return button.closest(".queries") ? [index, null] : [null, index];
}

function cellOf(event) {
  const box = $("heat").getBoundingClientRect();
  const q = Math.floor((event.clientY - box.top - corner[1]) / cell);
  const k = Math.floor((event.clientX - box.left - corner[0]) / cell);
  const inside = q < state.view.queries.length && k < state.view.keys.length;
  if (!inside || (q < 0 && k < 0)) return [null, null];
  return [q < 0 ? null : q, k < 0 ? null : k];
}

function hold(query, key) {
  const again = state.held && query === state.query && key === state.key;
  state.held = false;
  isolate(query, key, !again && (query !== null || key !== null));
}

// Arrow keys go along the words of a side, and across to the other.
function moveFocus(event) {
  const word = wordOf(event);
  const [back, on] = state.rows ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const across = state.rows ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  if (!word || ![back, on, ...across].includes(event.key)) return;
  event.preventDefault();
  const side = word[0] !== null ? "queries" : "keys";
  const next = across.includes(event.key) ? (side === "queries" ? "keys" : "queries") : side;
  const step = event.key === back ? -1 : event.key === on ? 1 : 0;
  const items = $(next).children;
  const index = Math.min(Math.max((word[0] ?? word[1]) + step, 0), items.length - 1);
  for (const item of items) item.firstChild.tabIndex = -1;
  items[index].firstChild.tabIndex = 0;
  items[index].firstChild.focus();
}

function answerControls() {
  const form = document.querySelector("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", readControls);
  $("heads").addEventListener("click", (event) => {
    const heads = event.target.id === "all" ? Array(state.view.heads).keys() : [];
    if (["all", "none"].includes(event.target.id)) choose(state.layer, heads);
  });
  $("heads").addEventListener("dblclick", (event) => {
    const label = event.target.closest(".head");
    if (label) choose(state.layer, [+label.firstChild.value]);
  });
  $("heads").addEventListener("pointerover", (event) => {
    const label = event.target.closest(".head");
    state.glimpse = label && event.pointerType === "mouse" ? +label.firstChild.value : null;
    draw();
  });
  $("heads").addEventListener("pointerleave", () => {
    state.glimpse = null;
    draw();
  });
}

function answerPictures() {
  const lines = $("lines");
  lines.addEventListener("pointerover", (event) => isolate(...(wordOf(event) ?? [null, null])));
  lines.addEventListener("pointerleave", () => isolate(null, null));
  lines.addEventListener("focusin", (event) => wordOf(event) && isolate(...wordOf(event)));
  lines.addEventListener("focusout", () => isolate(null, null));
  lines.addEventListener("click", (event) => hold(...(wordOf(event) ?? [null, null])));
  lines.addEventListener("keydown", moveFocus);
  $("heat").addEventListener("pointermove", (event) => isolate(...cellOf(event)));
  $("heat").addEventListener("pointerleave", () => isolate(null, null));
  $("heat").addEventListener("click", (event) => hold(...cellOf(event)));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    letGo();
    draw();
  });
}

function answerTables() {
  for (const id of ["overview", "summary"]) {
    $(id).addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) choose(+button.dataset.layer, [+button.dataset.head]);
    });
  }
  $("columns").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const column = button.dataset.column === "" ? null : +button.dataset.column;
    state.down = column !== state.sort || !state.down;
    state.sort = column;
    makeTable();
    markChosen();
    document.querySelector(`#columns [data-column="${column ?? ""}"]`).focus();
  });
}

function answerScreen() {
  dark.addEventListener("change", () => {
    makeControls();
    drawOverview();
    draw();
  });
  addEventListener("resize", draw);
}

readAddress();
makeControls();
makeWords();
drawOverview();
makeTable();
answerControls();
answerPictures();
answerTables();
answerScreen();
draw();
