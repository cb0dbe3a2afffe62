// The page: text in, translations to choose from, the attention of the chosen one.

import { Figure, chooseHead, joinPieces, joinWeights } from "./figure.js";

const BOS = "<s>";
// Choices as [value, label].
const KINDS = [
  ["memory", "Encoder\u2013decoder"],
  ["encoder", "Encoder self"],
  ["decoder", "Decoder self"],
];
const CAPTIONS = {
  memory: "Encoder\u2013decoder attention",
  encoder: "Encoder self-attention",
  decoder: "Decoder self-attention",
};
const UNITS = [
  ["words", "Words"],
  ["pieces", "Subwords"],
];

const at = (id) => document.getElementById(id);
const figure = new Figure(at("figure"));
const model = fetchJson("model").then(showModel, (error) => (showError(at("form"), error), {}));
// What was answered about each pair of texts, while the page is open.
const answers = new Map();
let readAtMost = Infinity; // subwords of a source
let translating = false;
let chosen = null; // the pair of texts whose attention is asked for
let attention = null; // the attention that is drawn

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("sentences").addEventListener("change", (event) => choose(event.target));
at("controls").addEventListener("change", draw);
addChoices("kinds", KINDS);
addChoices("units", UNITS);

async function fetchJson(path, value) {
  const post = { method: "POST", body: JSON.stringify(value) };
  let response;
  try {
    response = await fetch(path, value === undefined ? {} : post);
  } catch {
    throw new Error("the server does not answer");
  }
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function showError(place, error) {
  place.querySelector(".error").textContent = error ? error.message : "";
}

function showModel(card) {
  const millions = card.parameters / 1e6;
  const facts = [
    card.config && `${card.config.num_layers} layers of ${card.config.num_heads} heads`,
    card.parameters && `${millions.toFixed(millions < 10 ? 1 : 0)} million parameters`,
    card.beam_size && `beam ${card.beam_size}`,
    card.alpha !== undefined && `\u03b1 = ${card.alpha}`,
    card.checkpoint,
    card.evaluation?.bleu && `BLEU ${card.evaluation.bleu.toFixed(1)}`,
  ];
  readAtMost = card.max_source_length ?? readAtMost;
  const parts = facts.filter(Boolean).map((fact) => fact.replaceAll(" ", "\u00a0"));
  at("model").textContent = parts.join(" \u00b7 ");
  return card;
}

/** Does slow work, telling in `place` that it runs, for how long, and how it failed. */
async function busy(place, message, work) {
  const started = performance.now();
  const status = place.querySelector(".status");
  const seconds = () => Math.round((performance.now() - started) / 1000);
  const timer = setInterval(() => (status.textContent = `${message} ${seconds()} s`), 1000);
  status.textContent = message;
  showError(place, null);
  try {
    return await work();
  } catch (error) {
    showError(place, error);
    return null;
  } finally {
    clearInterval(timer);
    status.textContent = "";
  }
}

async function translate() {
  const texts = at("text").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (texts.length === 0 || translating) return;
  setTranslating(true);
  const card = await model;
  const made = await busy(at("form"), "Translating\u2026", () =>
    fetchJson("translate", { texts, n_best: card.beam_size ?? 1 }),
  );
  setTranslating(false);
  if (!made) return;
  const entries = texts.map((text, i) => sentenceEntry(text, made.translations[i]));
  at("sentences").replaceChildren(...entries);
  at("translations").hidden = false;
  const first = at("sentences").querySelector("input");
  first.checked = true;
  choose(first);
}

function setTranslating(value) {
  translating = value;
  at("translate").setAttribute("aria-disabled", String(value)); // keeps the focus, unlike disabled
}

/** One sentence, and its translations to choose from. */
function sentenceEntry(source, translations) {
  const entry = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.dir = "auto";
  legend.textContent = source;
  entry.append(legend, ...translations.map((translation) => option(source, translation)));
  return entry;
}

function option(source, translation) {
  const label = document.createElement("label");
  label.className = "entry";
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: "translation" });
  Object.assign(input.dataset, { source, target: translation.text });
  const text = document.createElement("span");
  text.dir = "auto";
  text.textContent = translation.text || "(nothing)";
  label.append(input, text, number(translation.score, 3), number(translation.log_prob, 2));
  return label;
}

function number(value, digits) {
  const cell = document.createElement("span");
  cell.className = "number";
  cell.textContent = value.toFixed(digits).replace("-", "\u2212");
  return cell;
}

async function choose(input) {
  const { source, target } = input.dataset;
  const pair = JSON.stringify([source, target]);
  chosen = pair;
  at("attention").hidden = false;
  at("figure").classList.add("stale");
  if (!answers.has(pair)) {
    const made = await busy(at("attention"), "Computing attention\u2026", () =>
      fetchJson("attention", { source, target }),
    );
    if (made) answers.set(pair, made);
  }
  if (chosen !== pair) return; // another one was chosen meanwhile
  attention = answers.get(pair) ?? null;
  at("figure").hidden = at("controls").hidden = attention === null;
  draw();
}

function draw() {
  if (!attention) return;
  const kind = selected("kinds");
  const layers = attention[kind];
  addChoices("layers", numbered(layers.length), layers.length - 1);
  const layer = Number(selected("layers"));
  const count = layers[layer].length;
  addChoices("heads", [["mean", "Mean"], ...numbered(count)]);
  const head = selected("heads");
  const weights = chooseHead(layers[layer], head);
  const heads = head === "mean" ? `mean of ${count} heads` : `head ${Number(head) + 1} of ${count}`;
  const cut = attention.source_pieces.length >= readAtMost;
  const caption =
    `${CAPTIONS[kind]}, layer ${layer + 1} of ${layers.length}, ${heads}.` +
    (cut ? ` The model reads ${readAtMost} subwords, and no more.` : "");
  figure.draw({ ...view(kind, weights, selected("units") === "pieces"), caption });
  at("figure").classList.remove("stale");
}

/** What Figure.draw takes, but for the caption. */
function view(kind, weights, apart) {
  const source = joinPieces(attention.source_pieces, apart);
  const target = joinPieces(attention.target_pieces, apart);
  if (kind === "encoder") {
    return {
      left: source,
      right: source,
      headings: { left: "Source", right: "attends to" },
      weights: joinWeights(weights, source, source),
      attends: "left",
    };
  }
  if (kind === "decoder") {
    const read = wordsRead(target, weights.length);
    return {
      left: target,
      right: read,
      headings: { left: "Translation, predicted", right: "attends to, as read" },
      weights: joinWeights(weights, target, read),
      attends: "left",
    };
  }
  const byTarget = joinWeights(weights, target, source);
  return {
    left: source,
    right: target,
    headings: { left: "Source", right: "Translation" },
    weights: source.map((_, s) => byTarget.map((row) => row[s])),
    attends: "right",
  };
}

/** The words that the decoder reads: the target, one position later, behind BOS. */
function wordsRead(target, length) {
  const later = target.map((word) => ({
    ...word,
    pieces: word.pieces.map((position) => position + 1).filter((position) => position < length),
  }));
  return [{ text: BOS, special: true, pieces: [0] }, ...later.filter((word) => word.pieces.length)];
}

function numbered(count) {
  return Array.from({ length: count }, (_, i) => [String(i), String(i + 1)]);
}

/** Fills a fieldset with radio buttons, unless it has these already; keeps what was chosen. */
function addChoices(id, choices, preferred = 0) {
  const fieldset = at(id);
  const before = [...fieldset.querySelectorAll("input")].map((input) => input.value);
  if (before.join() === choices.map(([value]) => value).join()) return;
  const kept = choices.findIndex(([value]) => value === selected(id));
  fieldset.querySelectorAll("label").forEach((label) => label.remove());
  choices.forEach(([value, text], i) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const checked = i === (kept >= 0 ? kept : preferred);
    Object.assign(input, { type: "radio", name: id, value, checked });
    label.append(input, text);
    fieldset.append(label);
  });
}

function selected(id) {
  return at(id).querySelector("input:checked")?.value;
}
