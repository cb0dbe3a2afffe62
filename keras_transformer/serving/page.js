// The page: text in, translations to choose from, the attention of the chosen one.

import { $, element, showAttention } from "./figure.js";

const EXAMPLES = { English: "the old woman sees a dog.", German: "die alte Frau sieht einen Hund." };
const LANGUAGES = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
// A language's name by its code; none for another ending of a file, such as txt.
const nameOf = (code) => /^[a-z]{2,3}$/.test(code) ? LANGUAGES.of(code) : undefined;

const model = fetchJson("model").then(showModel, (error) => {
  $("form").querySelector(".error").textContent = error.message;
  return {};
});
const answers = new Map(); // what was answered about each pair of texts, while the page is open
const latest = new Map(); // the last work that was begun at each place

$("form").addEventListener("submit", translate);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
});
$("sentences").addEventListener("change", (event) => choose(event.target));
$("sentences").addEventListener("focusin", ({ target }) =>
  target.parentNode.querySelector("input:not(:checked)")?.click());
$("sentences").addEventListener("keydown", goOn);

async function fetchJson(path, value) {
  const post = value && { method: "POST", body: JSON.stringify(value) };
  const response = await fetch(path, post).catch(() => {
    throw new Error("the server does not answer");
  });
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function showModel(card) {
  const parsing = card.task === "parsing"; // of the Penn Treebank's English
  const [source, target] = parsing ? ["English"] : (card.evaluation?.languages ?? []).map(nameOf);
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

async function translate(event) {
  event.preventDefault();
  const button = $("translate");
  if (button.ariaDisabled === "true") return;
  const texts = $("text").value.split("\n").map((line) => line.trim()).filter(Boolean);
  button.ariaDisabled = "true"; // keeps the focus, unlike disabled
  const made = await busy($("form"), "Translating\u2026", async () => {
    if (texts.length === 0) throw new Error("There is no text yet: write a sentence first.");
    return madeEntries(texts);
  });
  button.ariaDisabled = "false";
  if (!made) return; // earlier translations stay, with what was typed there
  latest.delete($("attention")); // what runs there belongs to earlier translations
  $("sentences").replaceChildren(...made);
  $("translations").hidden = false;
  $("sentences").querySelector("input").click();
}

/** Has texts translated with what must be in them, perhaps beginning with a prefix each. */
async function madeEntries(texts, prefixes) {
  const { beam_size: n_best = 1, task, signatures = [] } = await model;
  const editable = task !== "parsing" && signatures.includes("complete");
  const phrases = $("required").control.value.match(/[^,\s]+(?:\s+[^,\s]+)*/g); // or null
  const options = { prefixes, required_phrases: phrases && texts.map(() => phrases), n_best };
  const { translations } = await fetchJson("translate", { texts, ...options });
  return texts.map((text, i) => sentenceEntry(text, translations[i], editable));
}

/** One sentence, and its translations to choose from and perhaps to edit. */
function sentenceEntry(source, translations, editable) {
  const number = (value, digits) =>
    element("span", { class: "number" }, value.toFixed(digits).replace("-", "\u2212"));
  const editing = editable && { role: "textbox", "aria-label": "Translation", spellcheck: false,
    "aria-describedby": "editing", contenteditable: "plaintext-only" };
  return element("fieldset", {}, element("legend", { dir: "auto" }, source),
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
  const made = await busy($("form"), "Translating\u2026", () => madeEntries([source], [prefix]));
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
