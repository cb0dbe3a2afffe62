// Attention drawn as in Figures 3 to 5 of the paper: two columns of words, and between them lines
// that are the stronger the larger the weight.

const WORD_START = "\u2581"; // SentencePiece: a word begins here
const WORD_PART = "##"; // WordPiece: it does not
const SPECIAL = /^<(\/?s|unk|pad)>$/;
const PUNCTUATION = /^\u2581?(?!\u2581)[\p{P}\p{S}]+$/u;
const INSIDE_WORDS = /^['\u2019\u2010-]$/;
const BYTES = /(?:<0x[0-9A-F]{2}>)+/g;
// Smaller weights are neither drawn nor told.
const FAINTEST = 0.02;
// Words are marked as aligned from this weight on, or where there is no larger one.
const ALIGNED = 0.1;
// Most weights that are told in numbers.
const TOLD = 4;
const HINT = "Point at a word, or go there with the arrow keys, to see what it is aligned with.";

/**
 * Joins pieces of words to words, and gives [{text, special, pieces: [position, ...]}, ...].
 * Punctuation stands alone; `apart` leaves every piece so.
 */
export function joinPieces(pieces, apart = false) {
  const marked = pieces.some((piece) => piece.startsWith(WORD_START));
  const begins = (piece) => (marked ? piece.startsWith(WORD_START) : !piece.startsWith(WORD_PART));
  const alone = (piece) =>
    SPECIAL.test(piece) || (PUNCTUATION.test(piece) && !INSIDE_WORDS.test(piece));
  const words = [];
  pieces.forEach((piece, position) => {
    const before = pieces[position - 1];
    if (position === 0 || apart || begins(piece) || alone(piece) || alone(before)) {
      words.push({ pieces: [], special: SPECIAL.test(piece) });
    }
    words.at(-1).pieces.push(position);
  });
  for (const word of words) {
    const raw = word.pieces.map((position) => pieces[position]).join("");
    word.text = apart ? raw : readable(raw, marked);
  }
  return words;
}

function readable(raw, marked) {
  const text = marked ? raw.replaceAll(WORD_START, " ") : raw.replaceAll(WORD_PART, "");
  return text.replace(BYTES, decodeBytes).trim() || "\u2423";
}

function decodeBytes(run) {
  const bytes = run.match(/[0-9A-F]{2}(?=>)/g).map((byte) => parseInt(byte, 16));
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Weights of words from those [Q, K] of pieces: the sum over a key's, the mean over a query's. */
export function joinWeights(weights, queries, keys) {
  const rowsOf = (query) => query.pieces.map((position) => weights[position]);
  const taken = (row, key) => sum(key.pieces.map((position) => row[position]));
  return queries.map((query) =>
    keys.map((key) => sum(rowsOf(query).map((row) => taken(row, key))) / query.pieces.length),
  );
}

/** The mean of heads [H, Q, K], or one of them. */
export function chooseHead(heads, head) {
  if (head !== "mean") return heads[head];
  return heads[0].map((row, q) => row.map((_, k) => sum(heads.map((h) => h[q][k])) / heads.length));
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** Two columns of words that can be pointed at; see `draw`. */
export class Figure {
  constructor(root) {
    this.columns = root.querySelector(".columns");
    this.lists = { left: root.querySelector("ol.left"), right: root.querySelector("ol.right") };
    this.headings = { left: root.querySelector("h3.left"), right: root.querySelector("h3.right") };
    this.svg = root.querySelector("svg");
    this.caption = root.querySelector(".caption");
    this.readout = root.querySelector(".readout");
    this.pinned = null;
    const { columns } = this;
    columns.addEventListener("pointerover", (event) => this.#showAt(event.target));
    columns.addEventListener("pointerleave", () => this.#show(this.pinned));
    columns.addEventListener("focusin", (event) => this.#showAt(event.target));
    columns.addEventListener("focusout", () => this.#show(this.pinned));
    columns.addEventListener("click", (event) => this.#pin(wordAt(event.target)));
    columns.addEventListener("keydown", (event) => this.#walk(event));
  }

  /**
   * Draws words, and lines between them.
   *
   * view: {left, right: words; headings: {left, right}; weights: [left][right];
   *        attends: "left" or "right", the side whose words attend to those of the other;
   *        caption}
   */
  draw(view) {
    const same = this.view && ["left", "right"].every((side) => sameWords(view, this.view, side));
    this.view = view;
    if (!same) this.pinned = null;
    for (const side of ["left", "right"]) {
      this.headings[side].textContent = view.headings[side];
      if (!same) this.lists[side].replaceChildren(...view[side].map((w, i) => item(w, side, i)));
    }
    this.caption.textContent = view.caption;
    this.#drawLines();
    this.#show(this.pinned);
  }

  #drawLines() {
    const { left, right, weights } = this.view;
    const rows = Math.max(left.length, right.length);
    this.svg.setAttribute("viewBox", `0 0 1 ${rows}`);
    this.columns.style.setProperty("--rows", rows);
    const lines = weights.flatMap((row, i) => row.map((weight, j) => ({ i, j, weight })));
    const seen = lines.filter((line) => line.weight >= FAINTEST);
    seen.sort((a, b) => a.weight - b.weight);
    this.svg.replaceChildren(...seen.map(drawnLine));
    this.svg.setAttribute("aria-label", this.view.caption);
  }

  #showAt(target) {
    const word = wordAt(target);
    if (word) this.#show(word);
  }

  #pin(word) {
    if (!word) return;
    const again = this.pinned?.side === word.side && this.pinned.index === word.index;
    this.pinned = again ? null : word;
    this.#show(word);
  }

  /** Marks a word, and those of the other side that it is aligned with. */
  #show(word) {
    const strengths = word ? this.#strengths(word) : [];
    const largest = Math.max(...strengths, FAINTEST);
    this.columns.classList.toggle("pointed", word !== null);
    for (const side of ["left", "right"]) {
      [...this.lists[side].children].forEach((entry, index) => {
        const button = entry.firstChild;
        const here = word?.side === side && word.index === index;
        const strength = word && side !== word.side ? strengths[index] : 0;
        button.classList.toggle("here", here);
        button.classList.toggle("aligned", strength >= Math.min(ALIGNED, largest));
        button.style.setProperty("--strength", strength.toFixed(3));
        button.setAttribute(
          "aria-pressed",
          String(this.pinned?.side === side && this.pinned.index === index),
        );
      });
    }
    for (const line of this.svg.children) {
      line.classList.toggle("lit", word !== null && line.dataset[word.side] === `${word.index}`);
    }
    this.readout.textContent = word ? this.#told(word, strengths) : HINT;
  }

  #strengths({ side, index }) {
    const { weights } = this.view;
    return side === "left" ? weights[index] : weights.map((row) => row[index]);
  }

  #told({ side, index }, strengths) {
    const other = side === "left" ? "right" : "left";
    const verb = side === this.view.attends ? "attends to" : "is attended to by";
    const best = strengths
      .map((weight, i) => ({ weight, text: this.view[other][i].text }))
      .filter(({ weight }) => weight >= FAINTEST)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, TOLD)
      .map(({ weight, text }) => `${text} ${weight.toFixed(2)}`);
    return `${this.view[side][index].text} ${verb} ${best.join(", ") || "nothing much"}`;
  }

  /** Arrow keys go through a column and across; Escape lets go. */
  #walk(event) {
    const word = wordAt(event.target);
    if (!word) return;
    if (event.key === "Escape") {
      this.pinned = null;
      this.#show(null);
      return;
    }
    const steps = { ArrowUp: -1, ArrowDown: 1 };
    const across = { ArrowLeft: "left", ArrowRight: "right" };
    const list = this.lists[across[event.key] ?? word.side].children;
    const index = Math.min(Math.max(word.index + (steps[event.key] ?? 0), 0), list.length - 1);
    if (!(event.key in steps) && !(event.key in across)) return;
    event.preventDefault();
    for (const button of this.columns.querySelectorAll("button")) button.tabIndex = -1;
    list[index].firstChild.tabIndex = 0;
    list[index].firstChild.focus();
  }
}

function sameWords(view, other, side) {
  const texts = [view, other].map((v) => JSON.stringify(v[side].map((word) => word.text)));
  return view.headings[side] === other.headings[side] && texts[0] === texts[1];
}

function item(word, side, index) {
  const button = document.createElement("button");
  button.type = "button";
  button.dir = "auto";
  button.textContent = word.text;
  button.title = word.text;
  button.classList.toggle("special", word.special);
  // One stop for the Tab key: arrow keys go on from there.
  button.tabIndex = side === "left" && index === 0 ? 0 : -1;
  Object.assign(button.dataset, { side, index });
  const entry = document.createElement("li");
  entry.append(button);
  return entry;
}

function wordAt(target) {
  const button = target.closest("button");
  return button && { side: button.dataset.side, index: Number(button.dataset.index) };
}

function drawnLine({ i, j, weight }) {
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const ends = { x1: 0, y1: i + 0.5, x2: 1, y2: j + 0.5 };
  for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
  line.style.setProperty("--strength", weight.toFixed(3));
  Object.assign(line.dataset, { left: i, right: j });
  return line;
}
