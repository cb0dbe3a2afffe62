// The page: text in, translations to choose from, the attention of the chosen one.

import { element, showAttention } from "./figure.js";

const at = (id) => document.getElementById(id);
const model = fetchJson("model").then(showModel, (error) => (showError(at("form"), error), {}));
const answers = new Map(); // what was answered about each pair of texts, while the page is open
const latest = new Map(); // the last work that was begun at each place
let translating = false;

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("sentences").addEventListener("change", (event) => choose(event.target));

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
    card.beam_size && `beam size ${card.beam_size}`,
    card.alpha !== undefined && `length penalty \u03b1 = ${card.alpha}`,
    card.checkpoint && weightsOf(card.checkpoint),
    card.evaluation?.bleu && `BLEU ${card.evaluation.bleu.toFixed(1)}`,
  ];
  const parts = facts.filter(Boolean).map((fact) => fact.replaceAll(" ", "\u00a0"));
  at("model").textContent = parts.join(" \u00b7 ");
  return card;
}

/** Says in words which weights a checkpoint's name or path stands for. */
function weightsOf(checkpoint) {
  const [name] = checkpoint.match(/[^/\\]*$/);
  const [, count] = /^average[:-](\d+)/.exec(name) ?? [];
  const [, step] = /^step-0*(\d+)$/.exec(name) ?? [];
  if (count) return `weights: mean of ${count} checkpoints`;
  return step ? `weights of training step ${step}` : `weights: ${name}`;
}

/**
 * Does slow work, and says in `place` that it runs, for how long, and how it failed.
 * Whatever was begun there earlier says nothing from now on.
 */
async function busy(place, message, work) {
  const started = performance.now();
  latest.set(place, started);
  const say = (text, error = null) => {
    if (latest.get(place) !== started) return;
    place.querySelector(".status").textContent = text;
    showError(place, error);
  };
  const seconds = () => Math.round((performance.now() - started) / 1000);
  const timer = setInterval(() => say(`${message} ${seconds()} s`), 1000);
  say(message);
  try {
    const answer = await work();
    say("");
    return answer;
  } catch (error) {
    say("", error);
    return null;
  } finally {
    clearInterval(timer);
  }
}

async function translate() {
  if (translating) return;
  const texts = at("text").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (texts.length === 0) {
    showError(at("form"), new Error("There is no text to translate: write a sentence first."));
    return;
  }
  setTranslating(true);
  const card = await model;
  const made = await busy(at("form"), "Translating\u2026", () =>
    fetchJson("translate", { texts, n_best: card.beam_size ?? 1 }),
  );
  setTranslating(false);
  latest.delete(at("attention")); // what runs there belongs to earlier translations
  at("translations").hidden = at("attention").hidden = !made;
  if (!made) return;
  const entries = texts.map((text, i) => sentenceEntry(text, made.translations[i]));
  at("sentences").replaceChildren(...entries);
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
  return element("fieldset", {}, element("legend", { dir: "auto" }, source),
    ...translations.map(({ text, score, log_prob }) => element("label", { class: "entry" },
      element("input", { type: "radio", name: "translation", "data-source": source,
        "data-target": text }),
      element("span", { dir: "auto" }, text || "(nothing)"),
      number(score, 3), number(log_prob, 2))));
}

const number = (value, digits) =>
  element("span", { class: "number" }, value.toFixed(digits).replace("-", "\u2212"));

async function choose(input) {
  const { source, target } = input.dataset;
  const pair = JSON.stringify([source, target]);
  at("attention").hidden = false;
  at("figure").classList.add("stale");
  const attention = await busy(at("attention"), "Computing attention\u2026", async () => {
    if (!answers.has(pair)) answers.set(pair, await fetchJson("attention", { source, target }));
    return answers.get(pair);
  });
  if (!input.checked || !input.isConnected) return; // another one was chosen meanwhile
  at("figure").hidden = attention === null;
  if (attention === null) return;
  const { max_source_length: readAtMost } = await model;
  showAttention(at("figure"), attention, { readAtMost });
  at("figure").classList.remove("stale");
}
