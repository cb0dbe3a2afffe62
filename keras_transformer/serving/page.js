// The page: text in, translations to choose from, the attention of the chosen one.

import { $, element, showAttention } from "./figure.js";

const EXAMPLES = { English: "the old woman sees a dog.", German: "die alte Frau sieht einen Hund." };
const LANGUAGES = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
// A language's name by its code; none for another ending of a file, such as txt.
const nameOf = (code) => /^[a-z]{2,3}$/.test(code) ? LANGUAGES.of(code) : undefined;
// Codes of source and target; of a parsing model, the Penn Treebank's.
const languagesOf = (card) => card.task === "parsing" ? ["en"]
  : card.data?.languages ?? card.evaluation?.languages ?? [];

const model = fetchJson("model").then(showModel, (error) => {
  $("form").querySelector(".error").textContent = error.message;
  return {};
});
let asking = new AbortController(); // of the newest request for translations
let asked = ""; // what runs, as `wanted` gives it
let answered = ""; // what the translations are of
const answers = new Map(); // what was answered about each pair of texts, while the page is open
const latest = new Map(); // the last work that was begun at each place

$("text").value = kept("text");
$("required").control.value = kept("phrases");
$("form").addEventListener("submit", translate);
$("form").addEventListener("input", () => {
  keep("text", $("text").value);
  keep("phrases", $("required").control.value);
  showWhetherChanged();
});
$("clear").addEventListener("click", clear);
$("copy").addEventListener("click", copy);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
});
$("sentences").addEventListener("change", (event) => choose(event.target));
$("sentences").addEventListener("focusin", ({ target }) =>
  target.parentNode.querySelector("input:not(:checked)")?.click());
$("sentences").addEventListener("keydown", goOn);

// What was typed outlives a reload, in this tab; a browser may not allow that.
function keep(name, value) {
  try { sessionStorage.setItem(name, value); } catch { /* it is not kept */ }
}

function kept(name) {
  try { return sessionStorage.getItem(name) ?? ""; } catch { return ""; }
}

async function fetchJson(path, value, signal) {
  const post = value && { method: "POST", body: JSON.stringify(value), signal };
  const response = await fetch(path, post).catch(() => {
    throw new Error("the server does not answer");
  });
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function showModel(card) {
  const parsing = card.task === "parsing";
  const [source, target] = languagesOf(card).map(nameOf);
  let what = parsing ? "English text to parse" : "Text to translate";
  if (source && target) what = `${source} text to translate into ${target}`;
  $("label").textContent = `${what}, one sentence per line`;
  if (source in EXAMPLES) $("text").placeholder = `For example: ${EXAMPLES[source]}`;
  $("required").hidden = !card.signatures?.includes("constrain");
  const millions = card.parameters / 1e6;
  const facts = [
    card.config && `${card.config.num_layers} layers of ${card.config.num_heads} heads`,
    card.parameters && `${millions.toFixed(millions < 10 ? 1 : 0)} million parameters`,
    card.beam_size && `beam size ${card.beam_size}`,
    card.alpha !== undefined && `length penalty \u03b1 = ${card.alpha}`,
    card.checkpoint && `weights: ${card.checkpoint
      .replace(/.+,.+/, (all) => `average:${all.split(",").length}`).split(/[/\\]/).at(-1)
      .replace(/^average[:-](\d+).*/, "mean of $1 checkpoints")}`,
    card.evaluation?.bleu && `BLEU ${card.evaluation.bleu.toFixed(1)}`,
  ];
  const parts = facts.filter(Boolean).map((fact) => fact.replaceAll(" ", "\u00a0"));
  $("model").textContent = parts.join(" \u00b7 ");
  return card;
}

/**
 * Does slow work, and says in `place` that it runs, for how long, and how it failed.
 * Whatever was begun there earlier says nothing from now on.
 */
async function busy(place, message, work) {
  const started = performance.now();
  latest.set(place, started);
  const say = (status, error = "") => {
    if (latest.get(place) !== started) return;
    place.querySelector(".status").textContent = status;
    place.querySelector(".error").textContent = error;
  };
  const seconds = () => Math.round((performance.now() - started) / 1000);
  const timer = setInterval(() => say(`${message} ${seconds()} s`), 1000);
  say(message);
  let failure = "";
  const answer = await work().catch((error) => (failure = error.message, null));
  clearInterval(timer);
  say("", failure);
  return answer;
}

const lines = () => $("text").value.split("\n").map((line) => line.trim()).filter(Boolean);
const phrases = () => $("required").control.value.match(/[^,\s]+(?:\s+[^,\s]+)*/g); // or null
const wanted = () => JSON.stringify([lines(), phrases()]);

function showWhetherChanged() {
  const changed = wanted() !== answered;
  $("changed").hidden = !changed;
  $("sentences").classList.toggle("stale", changed);
}

/** Does work that asks for translations, and gives up the work before it; null if given up itself. */
async function newest(work) {
  asking.abort();
  const { signal } = asking = new AbortController();
  const made = await busy($("form"), "Translating\u2026", () => work(signal));
  return signal.aborted ? null : made;
}

async function translate(event) {
  event.preventDefault();
  const texts = lines(), wish = wanted();
  if (wish === asked) return; // it runs already
  asked = wish;
  const made = await newest(async (signal) => {
    if (texts.length === 0) throw new Error("There is no text yet: write a sentence first.");
    return madeEntries(signal, texts);
  });
  if (asked === wish) asked = "";
  if (!made) return; // earlier translations stay, with what was typed there
  answered = wish;
  latest.delete($("attention")); // what runs there belongs to earlier translations
  $("sentences").replaceChildren(...made);
  $("translations").hidden = false;
  showWhetherChanged(); // while it was translated
  $("sentences").querySelector("input").click();
}

function clear() {
  asking.abort();
  latest.clear();
  for (const place of document.querySelectorAll(".status, .error")) place.textContent = "";
  for (const name of ["translations", "attention"]) $(name).hidden = true;
  $("sentences").replaceChildren();
  $("text").value = $("required").control.value = asked = answered = "";
  keep("text", "");
  keep("phrases", "");
  $("text").focus();
}

/** Copies a translation of each sentence: the chosen one, or else the best. */
async function copy() {
  const texts = [...$("sentences").children].map((sentence) => {
    const input = sentence.querySelector(":checked") ?? sentence.querySelector("input");
    return input.dataset.target && input.nextSibling.textContent;
  });
  await write(texts.join("\n"));
  $("copied").textContent = "Copied";
  setTimeout(() => $("copied").textContent = "", 2000);
}

/** Puts a text on the clipboard, also where the page comes from another machine without HTTPS. */
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = element("textarea", {}, text);
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
  $("copy").focus();
}

/** Has texts translated with what must be in them, perhaps beginning with a prefix each. */
async function madeEntries(signal, texts, prefixes) {
  const card = await model;
  const { beam_size: n_best = 1, task, signatures = [] } = card;
  const editable = task !== "parsing" && signatures.includes("complete");
  const required_phrases = phrases() && texts.map(phrases);
  const options = { prefixes, required_phrases, n_best };
  const { translations } = await fetchJson("translate", { texts, ...options }, signal);
  return texts.map((text, i) =>
    sentenceEntry(text, translations[i], editable, warnings(text, translations[i], card)));
}

/** What a reader should know of a sentence and its translations. */
function warnings(text, translations, card) {
  const [code] = languagesOf(card);
  const sentences = new Intl.Segmenter(nameOf(code) && code, { granularity: "sentence" });
  const several = [...sentences.segment(text)].length > 1;
  return [
    several && "This model translates one sentence at a time: give each a line of its own.",
    translations[0].truncated && "This sentence is too long: only its first " +
      `${card.max_source_length - 1} subwords were translated.`,
    translations[0].unfinished && "The translation reached the greatest length before its end.",
  ].filter(Boolean);
}

/** One sentence, what is to be known of it, and its translations to choose from, perhaps to edit. */
function sentenceEntry(source, translations, editable, warnings) {
  const number = (value, digits) => element("span", { class: "number" },
    value === null ? "\u2212\u221e" : value.toFixed(digits).replace("-", "\u2212"));
  const editing = editable && { role: "textbox", "aria-label": "Translation", spellcheck: false,
    "aria-describedby": "editing", contenteditable: "plaintext-only" };
  return element("fieldset", {}, element("legend", { dir: "auto" }, source),
    ...warnings.map((text) => element("p", { class: "warning" }, text)),
    ...translations.map(({ text, score, log_prob }) => element(
      editable ? "div" : "label", { class: "entry" },
      element("input", { type: "radio", name: "translation", "aria-label": text || "(nothing)",
        "data-source": source, "data-target": text }),
      element("span", { dir: "auto", ...(text && editing) }, text || "(nothing)"),
      number(score, 3), number(log_prob, 2))));
}

// Enter in a translation keeps what is before the cursor, and has the rest written anew. Of a word
// that was there and has the cursor in it, nothing is kept.
async function goOn(event) {
  const box = event.target, text = box.textContent;
  if (event.key !== "Enter" || !box.isContentEditable) return;
  event.preventDefault();
  const range = getSelection().getRangeAt(0).cloneRange();
  range.setStart(box, 0);
  const { source, target } = box.previousSibling.dataset, before = range.toString();
  const inWord = text === target && /^\p{L}/u.test(text.slice(before.length));
  const prefix = inWord ? before.replace(/\p{L}+$/u, "") : before;
  const made = await newest((signal) => madeEntries(signal, [source], [prefix]));
  if (!made || box.textContent !== text) return; // what was typed stays
  box.closest("fieldset").replaceWith(made[0]);
  made[0].querySelector("[role=textbox]").focus();
  for (const _ of prefix) getSelection().modify("move", "forward", "character");
}

async function choose(input) {
  const { source, target } = input.dataset;
  const pair = JSON.stringify([source, target]);
  $("attention").hidden = false;
  $("figure").classList.add("stale");
  const attention = await busy($("attention"), "Computing attention\u2026", async () => {
    if (!answers.has(pair)) answers.set(pair, await fetchJson("attention", { source, target }));
    return answers.get(pair);
  });
  if (!input.checked || !input.isConnected) return; // another one was chosen meanwhile
  $("figure").hidden = attention === null;
  if (attention === null) return;
  const { max_source_length: readAtMost } = await model;
  showAttention($("figure"), { ...attention, readAtMost });
  $("figure").classList.remove("stale");
}
