// The page: translates a text paragraph by paragraph, and shows alternatives and attention for the
// chosen sentence.

import { $, element, showAttention } from "./figure.js";
import { ask, loading } from "./translator.js";

const EXAMPLES = { English: "The old woman sees a dog.", German: "Die alte Frau sieht einen Hund." };
const PAUSE = 500; // milliseconds without a keystroke before typed text is translated
const REVIEW_BELOW = 0.5; // translations with less confidence are marked
const PLAIN = ["text", "wrapped"]; // formats without marks; their sentences are marked on the page
// Kinds of text that stay as it is in a document: one of them, several, and a remark about them.
const LEFT = {
  code: ["text in a style for code", "texts in a style for code"],
  equation: ["equation", "equations"],
  field: ["field that a program fills in", "fields that a program fills in"],
  formula: ["text that formulas compute or use", "texts that formulas compute or use",
    "If a text that a formula uses were translated, the formula could have another result."],
  hint: ["prompt or caption of a sheet", "prompts or captions of sheets"],
  long: ["text whose translation is too long for a cell",
    "texts whose translations are too long for a cell"],
  header: ["header or footer of a sheet", "headers or footers of sheets"],
  deleted: ["tracked deletion", "tracked deletions"],
  hidden: ["hidden text", "hidden texts"],
  ruby: ["annotation of how a word is read", "annotations of how words are read"],
  protected: ["part that is marked as not to be translated",
    "parts that are marked as not to be translated"],
  damaged: ["part that a translation would have damaged",
    "parts that a translation would have damaged"],
};
const LANGUAGES = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
// A language's name from its code; undefined for other file suffixes, such as txt.
const nameOf = (code) => /^[a-z]{2,3}([-_][A-Z][a-z]{3})?$/.test(code)
  ? LANGUAGES.of(withoutUsualScript(code)) : undefined;
// Codes of source and target; for a parsing model, the Penn Treebank's language.
const languagesOf = (card) => card.task === "parsing" ? ["en"]
  : card.task_options?.target_languages ? [] // chosen in the menu
  : card.data?.languages ?? card.evaluation?.languages ?? [];

const model = ask("model").then(showModel, (error) => {
  $("form").querySelector(".error").textContent = error.message;
  return {};
});
let pausing; // timer after a keystroke, if the text is translated while typing
let translating = new AbortController(); // for the latest translation of the text
let choosing = new AbortController(); // for the latest request for a sentence's alternatives
let inProgress = ""; // the input being translated, in the form of `currentInput`
let shown = ""; // the input whose translation is shown
let language; // of the translation, or the direction, if the model has several
let terminology; // used for the translation, if the server has any; "" for none
let chosen = null; // the sentence whose alternatives are shown
let directions = []; // pairs of languages of a model with several
let attending = []; // the source and the translation whose attention can be shown
let attended = ""; // the pair of texts whose attention was requested last
let lineEnd = "\n"; // in the opened file
let fileFormats = {}; // of files that can be translated, by their extensions
let archives = []; // formats that are not text: their translations are downloaded at once
const lines = new Map(); // cached translations of lines
const answers = new WeakMap(); // the server's answer for each sentence of the translation
// The user's own translations, {translation, isSaved}, by `keyOf`: they come before the answers.
const edits = new Map(JSON.parse(kept("edits") || "[]"));
const attentions = new Map(); // cached attention by pair of texts
const latest = new Map(); // the latest task at each place

if (loading()) busy($("form"), loading, () => ask("healthz")); // the model runs in this browser
$("text").value = kept("text");
$("file-name").textContent = kept("file");
$("form").addEventListener("submit", translate);
$("text").addEventListener("input", () => {
  textChanged();
  clearTimeout(pausing);
  if (isLive()) pausing = setTimeout(translateWhatIsTyped, PAUSE);
});
$("live").control.addEventListener("change", () => {
  keep("live", isLive() ? "" : "off");
  if (isLive()) translateWhatIsTyped();
});
for (const name of ["text-language", "to"]) {
  $(name).addEventListener("change", () => {
    keep(name, $(name).value);
    $("swap").hidden = !opposite();
    translateAgain();
  });
}
$("swap").addEventListener("click", swap);
$("terms").addEventListener("change", translateAgain);
$("review").control.addEventListener("change", () => {
  keep("review", isReviewed() ? "on" : "");
  translateAgain();
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
});
$("open").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  const [file] = $("file").files;
  $("file").value = ""; // so that the same file can be reopened
  if (file) openFile(file);
});
$("text").addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault(); // allow dropping
});
$("text").addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (!file) return; // dropped text
  event.preventDefault();
  openFile(file);
});
$("clear").addEventListener("click", clear);
$("copy").addEventListener("click", copy);
$("download").addEventListener("click", download);
$("translation").addEventListener("click", ({ target }) => {
  const sentence = target.closest(".sentence");
  if (sentence && getSelection().isCollapsed) choose(sentence); // not a selection
});
$("translation").addEventListener("keydown", goToSentence);
$("choices").addEventListener("change", ({ target }) => take(target));
$("choices").addEventListener("input", ({ target }) => {
  if (target.isContentEditable) {
    keepEdit(target.textContent);
    for (const number of target.parentNode.querySelectorAll(".number")) number.remove(); // not its
  }
  $("saved").textContent = "";
});
$("choices").addEventListener("focusin", ({ target }) =>
  target.parentNode.querySelector("input:not(:checked)")?.click());
$("choices").addEventListener("keydown", goOn);
$("required").control.addEventListener("change", () => translateSentence());
$("save").addEventListener("click", saveCorrection);
$("remove").addEventListener("click", removeCorrection);
for (const name of ["attention", "details"]) {
  $(name).open = kept(name) === "open";
  $(name).addEventListener("toggle", () => keep(name, $(name).open ? "open" : ""));
}
$("attention").addEventListener("toggle", () => {
  if (chosen && $("attention").open) attend(...attending);
});

// Typed text and edits survive a reload of this tab, if the browser allows it.
function keep(name, value) {
  try { sessionStorage.setItem(name, value); } catch { /* not stored */ }
}

function kept(name) {
  try { return sessionStorage.getItem(name) ?? ""; } catch { return ""; }
}

function showModel(card) {
  const parsing = card.task === "parsing";
  const codes = languagesOf(card), [source, target] = codes.map(nameOf);
  const [what, become] = parsing ? ["English text to parse, one sentence per line", "Trees"]
    : source && target ? [`${source} text`, `${target} translation`]
    : ["Text to translate", "Translation"];
  $("label").textContent = what;
  $("target").textContent = become;
  $("title").textContent = document.title = parsing ? "Parse English text"
    : source && target ? `Translate ${source} text and documents into ${target}`
    : "Translate text and documents";
  if (source) $("text").lang = codes[0];
  if (target) $("translation").lang = codes[1];
  showLanguages("text-language", card.task_options?.source_languages ?? []);
  showLanguages("to", card.task_options?.target_languages ?? []);
  directions = card.task_options?.directions ?? [];
  $("swap").hidden = !opposite();
  showTerminologies(card.terminologies ?? []);
  if (source in EXAMPLES) $("text").placeholder = `For example: ${EXAMPLES[source]}`;
  $("required").hidden = !card.signatures?.includes("constrain_ids");
  $("and-attention").hidden = !card.signatures?.includes("attention_ids");
  $("and-editing").hidden = !isEditable(card);
  $("live").hidden = !card.in_browser;
  $("live").control.checked = kept("live") !== "off";
  $("review").hidden = !card.has_confidence;
  $("review").control.checked = kept("review") === "on";
  showFormats(card);
  $("hardly-trained").textContent = card.hardly_trained ?? "";
  $("hardly-trained").hidden = !card.hardly_trained;
  const millions = card.parameters / 1e6;
  const facts = [
    card.config && `${card.config.num_layers} layers of ${card.config.num_heads} heads`,
    card.parameters && `${millions.toFixed(millions < 10 ? 1 : 0)} million parameters`,
    card.beam_size && `beam size ${card.beam_size}`,
    card.alpha !== undefined && `length penalty \u03b1 = ${card.alpha}`,
    card.checkpoint && `weights: ${card.checkpoint
      .replace(/.+,.+/, (all) => `average:${all.split(",").length}`).split(/[/\\]/).at(-1)
      .replace(/^average[:-](\d+).*/, "average of $1 checkpoints")}`,
    card.evaluation?.bleu && `BLEU ${card.evaluation.bleu.toFixed(1)}`,
  ];
  const parts = facts.filter(Boolean).map((fact) => fact.replaceAll(" ", "\u00a0"));
  $("model").textContent = parts.join(" \u00b7 ");
  $("about").hidden = parts.length === 0;
  // Typed while the model was loading, or edited before the page was reloaded.
  if (isLive() || edits.size) translateWhatIsTyped();
  return card;
}

/** Lets the user open files in the formats that can be translated. */
function showFormats(card) {
  fileFormats = card.file_formats;
  archives = card.archives;
  $("file").accept = endings().join();
}

const isLive = () => !$("live").hidden && $("live").control.checked;

function translateWhatIsTyped() {
  if ($("text").value.trim()) $("form").requestSubmit();
}

/** A code without the language's usual script: "de" for "deu_Latn", but "zh-Hant" in full. */
function withoutUsualScript(code) {
  const locale = new Intl.Locale(code.replace("_", "-")), short = locale.minimize();
  return (short.region ? locale : short).toString();
}

/** Fills a menu of languages, "text-language" or "to", if there are several. */
function showLanguages(name, codes) {
  const options = codes.map((code) => element("option", { value: code }, nameOf(code) ?? code));
  $(name).replaceChildren(...options);
  $(name).hidden = codes.length < 2;
  if (codes.includes(kept(name))) $(name).value = kept(name);
}

/** The direction, if the model needs the text's language, too; or else the target language. */
function direction() {
  const source = $("text-language");
  return source.hidden ? $("to").value : `${source.value}-${$("to").value}`;
}

/** Whether a menu has a language. */
function offers(name, code) {
  return [...$(name).options].some((option) => option.value === code);
}

/**
 * The language of the text, if the menu's translations can be translated back into it; undefined
 * if there is no such language, or if it is not clear which one.
 */
function opposite() {
  const target = $("to").value;
  if (!$("text-language").hidden) {
    const source = $("text-language").value;
    return offers("to", source) && offers("text-language", target) ? source : undefined;
  }
  const known = (from, to) => directions.some((pair) => pair[0] === from && pair[1] === to);
  const sources = directions.map(([source]) => source)
    .filter((source, n, all) => all.indexOf(source) === n);
  const possible = sources.filter((source) => known(source, target) && known(target, source));
  return possible.length === 1 ? possible[0] : undefined;
}

/** Makes the translation the text, to be translated into the text's language. */
function swap() {
  const text = translation(), target = $("to").value;
  $("to").value = opposite();
  keep("to", $("to").value);
  if (!$("text-language").hidden) {
    $("text-language").value = target;
    keep("text-language", target);
  }
  $("swap").hidden = !opposite();
  if (text.trim()) {
    $("text").value = text;
    textChanged();
  }
  translateAgain();
}

/** Fills the menu of terminologies, if there are any; none is selected at first. */
function showTerminologies(names) {
  const options = names.map((name) => element("option", { value: name }, `List: ${name}`));
  $("terms").replaceChildren(element("option", { value: "" }, "No terms"), ...options);
  $("terms").hidden = names.length === 0;
}

/** The selected terminology; undefined if the server has none. */
const wantedTerms = () => $("terms").hidden ? undefined : $("terms").value;

/** Whether documents are to have marks at doubtful translations. */
const isReviewed = () => !$("review").hidden && $("review").control.checked;

/** The confidence below which the text gets marks; undefined for none. */
const review = () => isReviewed() && !PLAIN.includes(format()) ? REVIEW_BELOW : undefined;

/** Translates the text again after an option has changed. */
function translateAgain() {
  showWhetherChanged();
  translateWhatIsTyped();
}

/**
 * Runs a slow task, and shows its progress, elapsed time and failure in `place`; `message` is a
 * function. Earlier tasks there no longer show anything.
 */
async function busy(place, message, work) {
  const started = performance.now();
  latest.set(place, started);
  const say = (status, error = "") => {
    if (latest.get(place) !== started) return;
    place.querySelector(".status").textContent = status;
    place.querySelector(".error").textContent = error;
    if (error) place.querySelector(".error").scrollIntoView({ block: "nearest" }); // on a phone
  };
  const seconds = () => Math.round((performance.now() - started) / 1000);
  const timer = setInterval(() => say(`${message()} ${seconds()} s`), 1000);
  say(message());
  let failure = "";
  const answer = await work().catch((error) => (failure = error.message, null));
  clearInterval(timer);
  say("", failure);
  return answer;
}

const nameOfFile = () => $("file-name").textContent;
const endingOf = (name) => `.${name.split(".").at(-1).toLowerCase()}`;
const endings = () => Object.keys(fileFormats);
/** The format of a file with text; undefined for others. */
function formatOf(name) {
  const found = fileFormats[endingOf(name)];
  return archives.includes(found) ? undefined : found;
}
// A long line that ends within a sentence, followed by a line that begins with a lowercase letter.
// The server joins such lines (kit/documents/text/wrapped.py); here they are only detected.
const GOES_ON = /^.{39,119}[\p{L}\p{N},][ \t]*$(?=\n[> \t]*\p{Ll})/gmu;
const matches = (text, pattern) => (text.match(pattern) ?? []).length;
const isWrapped = (text) => matches(text, GOES_ON) * 10 >= Math.max(matches(text, /\S.*/g), 1);

/** The format of the text: its file's, or "wrapped" if the text looks wrapped. */
function format() {
  const found = formatOf(nameOfFile()) ?? "text";
  return found === "text" && isWrapped($("text").value) ? "wrapped" : found;
}

const currentInput = () =>
  JSON.stringify([$("text").value, format(), direction(), $("terms").value, review()]);

function textChanged() {
  if ($("text").value === "") { // text typed next is not part of the file
    $("file-name").textContent = "";
    keep("file", "");
    lineEnd = "\n";
  }
  keep("text", $("text").value);
  showWhetherChanged();
}

function showWhetherChanged() {
  const changed = shown !== "" && currentInput() !== shown;
  $("changed").hidden = !changed;
  $("translation").classList.toggle("stale", changed);
}

async function translate(event) {
  event.preventDefault();
  clearTimeout(pausing);
  const { limits } = await model; // also fills the language menu
  const input = currentInput();
  if (input === inProgress) return; // already running
  translating.abort();
  const { signal } = translating = new AbortController();
  inProgress = input;
  let done = 0, count = 0, counts = "";
  const progress = () => loading() ||
    (count > 1 ? `Translating\u2026 ${done} of ${count}` : "Translating\u2026");
  await busy($("form"), progress, async () => {
    const text = $("text").value;
    if (!text.trim()) throw new Error("There is no text to translate: type some or open a file.");
    if (text.length > limits?.whole_text) { // undefined if only requests are limited
      const [most, received] = [limits.whole_text, text.length].map((n) => n.toLocaleString("en"));
      throw new Error(`This text has ${received} characters; this page accepts ${most}`);
    }
    const texts = format() === "text" ? text.split("\n") : [text];
    const paragraphs = texts.map((line, number) =>
      line.trim() ? pending(number) : paragraph({ translation: line }));
    count = texts.filter((line) => line.trim()).length;
    showTranslation(input, paragraphs);
    for (const [number, line] of texts.entries()) {
      if (!line.trim()) continue;
      const answer = await translationOf(line, format(), signal);
      signal.throwIfAborted();
      const made = paragraph(answer);
      if (!answer.sentences) counts = countsOf(answer).join(", "); // else they are marked
      paragraphs[number].replaceWith(made);
      done += 1;
      enable(made);
    }
  });
  if (signal.aborted) return;
  if (counts) $("form").querySelector(".status").textContent = counts;
  inProgress = "";
  $("translation").ariaBusy = "false"; // screen readers announce it now
}

/** What to know of the sentences of a document, a text for each count. */
function countsOf({ from_memory, without_terms, doubtful }) {
  const sentences = (count) => `${count} ${count === 1 ? "sentence" : "sentences"}`;
  return [
    from_memory && `${sentences(from_memory)} from the translation memory`,
    without_terms && `${sentences(without_terms)} without a term, which did not fit`,
    doubtful && `${sentences(doubtful)} marked as doubtful`,
  ].filter(Boolean);
}

/** What stays as it is in a document, from the number of each kind. */
function leftIn(left) {
  const rows = Object.entries(left)
    .map(([kind, count]) => [count, ...LEFT[kind] ?? [kind, kind]]);
  const pieces = rows.map(([count, one, several]) => `${count} ${count === 1 ? one : several}`);
  const remarks = rows.map(([, , , remark]) => remark).filter(Boolean);
  return [pieces.length && `Not translated: ${pieces.join(", ")}.`, ...remarks].filter(Boolean);
}

/** Shows the translation so far, and nothing of the previous one. */
function showTranslation(input, paragraphs) {
  forgetSentence();
  shown = input;
  language = direction() || undefined;
  terminology = wantedTerms();
  if (language) $("translation").lang = $("to").value;
  $("translation").replaceChildren(...paragraphs);
  $("translation").ariaBusy = "true";
  showWhetherChanged();
  disable();
}

/** Disables the actions on the translation until it arrives. */
function disable() {
  $("choosing").hidden = $("copy").disabled = $("download").disabled = true;
}

/** Enables the actions on a finished paragraph; its first sentence joins the Tab order. */
function enable(made) {
  const sentence = made.querySelector(".sentence");
  if (sentence && $("choosing").hidden) {
    sentence.tabIndex = 0;
    $("choosing").hidden = false;
  }
  if (made.textContent.trim()) $("copy").disabled = $("download").disabled = false;
}

/** Translates one paragraph, or a whole document in a format other than text. */
async function translationOf(text, format, signal) {
  const key = JSON.stringify([text, format, language, terminology, review()]);
  if (lines.has(key)) return lines.get(key);
  const { task } = await model;
  let answer;
  if (task === "parsing") { // takes sentences only, not documents
    const { translations: [[best]] } = await ask("translate", { text }, signal);
    const sentence = { source: text, translation: best.text, start: 0,
      end: Array.from(best.text).length };
    answer = { translation: best.text, sentences: [sentence] };
  } else {
    const fields = { document: text, format, to: language, terminology, review_below: review() };
    answer = await ask("translate", fields, signal);
  }
  lines.set(key, answer);
  return answer;
}

/** A placeholder for a pending paragraph; while typing, its previous text. */
function pending(number) {
  const before = isLive() ? $("translation").children[number]?.textContent : "";
  return element("p", { class: "pending", "aria-hidden": "true" }, before || "\u2026");
}

/** A paragraph of the translation with its sentences. */
function paragraph(answer) {
  const characters = Array.from(answer.translation); // offsets count code points
  const nodes = [];
  let place = 0;
  for (const sentence of answer.sentences ?? []) {
    const span = element("span", { role: "button", tabindex: -1, "aria-pressed": "false",
      "data-source": sentence.source });
    show(span, sentence);
    nodes.push(characters.slice(place, sentence.start).join(""), span);
    place = sentence.end;
  }
  return element("p", { dir: "auto" }, ...nodes, characters.slice(place).join(""));
}

/** Shows a sentence of an answer, or the user's own translation of it. */
function show(span, sentence) {
  answers.set(span, sentence);
  const edit = edits.get(keyOf(sentence.source));
  const isEdited = edit !== undefined && !isSame(edit.translation, sentence.translation);
  span.textContent = isEdited ? edit.translation : sentence.translation;
  [span.className, span.title] = isEdited ? editMark(edit) : markOf(sentence);
}

/** Shows a sentence again wherever it occurs, after a change of its edit or its answer. */
function showAgain(key, change = {}) {
  keep("edits", JSON.stringify([...edits]));
  for (const span of $("translation").querySelectorAll(".sentence")) {
    if (keyOf(span.dataset.source) === key) show(span, { ...answers.get(span), ...change });
  }
}

/** What an edit belongs to: a sentence, and the language of its translation. */
const keyOf = (source) => JSON.stringify([source, $("translation").lang]);

/** Whether two translations have the same words; wrapped text also has line breaks. */
const isSame = (one, other) => one.trim().split(/\s+/).join() === other.trim().split(/\s+/).join();

/** Keeps a translation of the chosen sentence as the user's own, unless it is the answer. */
function keepEdit(translation) {
  const key = keyOf(chosen.dataset.source);
  if (isSame(translation, answers.get(chosen).translation)) edits.delete(key);
  else edits.set(key, { translation, isSaved: false });
  showAgain(key);
}

const editMark = ({ isSaved }) => isSaved
  ? ["sentence remembered", "Corrected; not used with these terms, as it lacks one"]
  : ["sentence edited", "Yours, not saved"];

/** How an answer is marked: from the translation memory; without terms, doubtful, or both. */
function markOf({ from_memory, without_terms, confidence }) {
  if (from_memory) {
    return ["sentence remembered", "From the translation memory or a correction"];
  }
  const classes = ["sentence"], titles = [];
  if (without_terms?.length) { // a model in the browser has no terms
    classes.push("lacking");
    titles.push(lackOf(without_terms));
  }
  if (confidence < REVIEW_BELOW) { // false without a confidence
    classes.push("doubtful");
    titles.push(`May be wrong: good with a probability of ${Math.round(confidence * 100)}%`);
  }
  return [classes.join(" "), titles.join(". ")];
}

const lackOf = (terms) => `Lacks ${terms.length === 1 ? "the term" : "the terms"} ` +
  `${terms.map((term) => `\u201c${term}\u201d`).join(", ")}, which did not fit`;

/** The translation so far. */
function translation() {
  const paragraphs = [...$("translation").querySelectorAll("p:not(.pending)")];
  return paragraphs.map((paragraph) => paragraph.textContent).join("\n");
}

/** Removes the translation, and aborts a running one. */
function forgetTranslation() {
  clearTimeout(pausing);
  translating.abort();
  forgetSentence();
  $("translation").replaceChildren();
  $("translation").ariaBusy = "false";
  inProgress = shown = "";
  showWhetherChanged();
  disable();
}

function clear() {
  latest.clear();
  for (const place of document.querySelectorAll(".status, .error")) place.textContent = "";
  $("text").value = "";
  edits.clear();
  keep("edits", "");
  for (const link of $("finished").querySelectorAll("a")) URL.revokeObjectURL(link.href);
  $("finished").replaceChildren();
  textChanged();
  forgetTranslation();
  $("text").focus();
}

async function openFile(file) {
  forgetTranslation(); // it is not this file's
  const text = await busy($("form"), () => "Reading\u2026", () => textOf(file));
  if (text === undefined) return translateFile(file);
  if (text === null) return; // it could not be read
  lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
  $("text").value = text;
  $("file-name").textContent = file.name;
  keep("file", file.name);
  textChanged();
  $("form").requestSubmit();
}

/** The text of a file that this page can show; undefined for any other file. */
async function textOf(file) {
  await model; // says which formats there are
  if (!formatOf(file.name)) return undefined;
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // in another encoding
  }
}

/** Has the server translate a file that this page cannot show, and downloads the result. */
async function translateFile(file) {
  const result = await busy($("form"), () => `Translating ${file.name}\u2026`, async () => {
    const card = await model;
    const isKnown = endings().includes(endingOf(file.name));
    if (card.in_browser) { // there is no server
      throw new Error(isKnown ? `The file must be UTF-8 text. Received: ${file.name}`
        : `The file name must end in one of ${endings().join(", ")}.`);
    }
    const form = new FormData();
    const target = $("to").value || languagesOf(card)[1] || "translation";
    // The server refuses other files by their names alone, and says what helps.
    form.append("file", isKnown ? file : new File([], file.name));
    form.append("source", $("text-language").hidden ? "auto" : $("text-language").value);
    form.append("target", target);
    if (wantedTerms() !== undefined) form.append("terminology", wantedTerms());
    if (isReviewed()) form.append("review_below", REVIEW_BELOW);
    const answer = await ask("translate_file", form);
    const response = await fetch(`download_file/${answer.translatedFileUrl.split("/").at(-1)}`);
    const link = saveAs(await response.blob(), file.name, target);
    const facts = [...countsOf(answer), ...leftIn(answer.left)];
    return element("div", {}, "Downloaded as ", link,
      ...facts.map((fact) => element("p", { class: "note" }, fact)));
  });
  if (result) $("finished").prepend(result);
}

async function download() {
  const target = $("to").value || languagesOf(await model)[1];
  const content = new Blob([translation().replaceAll("\n", lineEnd)], { type: "text/plain" });
  const link = saveAs(content, nameOfFile(), target);
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/**
 * Downloads a translation, and returns the link that does so. The name is made from that of its
 * file, if any, and from its language.
 */
function saveAs(content, name, target) {
  const parts = (name || "translation.txt").split(".");
  if (name) parts.splice(-1, 0, nameOf(target) ? target : "translation");
  const download = parts.join(".");
  const link = element("a", { href: URL.createObjectURL(content), download }, download);
  link.click();
  return link;
}

async function copy() {
  await write(translation());
  $("copied").textContent = "Copied";
  setTimeout(() => $("copied").textContent = "", 2000);
}

/** Copies a text to the clipboard, even if the page comes from another machine without HTTPS. */
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = element("textarea", {}, text);
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
  $("copy").focus();
}

// One sentence is in the Tab order, and the arrow keys move on from it.
function goToSentence(event) {
  const sentences = [...$("translation").querySelectorAll(".sentence")];
  const place = sentences.indexOf(event.target);
  if (place < 0) return;
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  if (event.key === "Enter" || event.key === " ") choose(event.target);
  else if (event.key in steps) focusSentence(sentences[place + steps[event.key]] ?? event.target);
  else return;
  event.preventDefault();
}

function focusSentence(sentence) {
  for (const other of $("translation").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  sentence.tabIndex = 0;
  sentence.focus();
}

function forgetSentence() {
  choosing.abort();
  chosen = null;
  attended = "";
  for (const name of ["sentence", "attention"]) {
    $(name).hidden = true;
    latest.delete($(name)); // its running task no longer shows anything
    for (const place of $(name).querySelectorAll(".status, .error")) place.textContent = "";
  }
  $("choices").replaceChildren();
  $("required").control.value = "";
  $("saved").textContent = "";
}

/** Shows alternatives for a sentence, and the attention for its current translation. */
async function choose(sentence) {
  if (sentence === chosen) return;
  const isOpen = chosen !== null;
  chosen?.setAttribute("aria-pressed", "false");
  if (!isOpen) forgetSentence();
  $("required").control.value = $("saved").textContent = "";
  chosen = sentence;
  sentence.setAttribute("aria-pressed", "true");
  focusSentence(sentence);
  $("sentence").hidden = false;
  $("choices").inert = true; // they are the previous sentence's
  $("figure").classList.add("stale");
  const entry = await newestEntry({ shown: sentence.textContent });
  if (sentence !== chosen) return;
  if (!entry) $("attention").hidden = true; // it belongs to another sentence
  $("choices").replaceChildren(...[entry].filter(Boolean));
  if (!entry) return;
  const inputs = [...entry.querySelectorAll("input")];
  const input = inputs.find(({ dataset }) => isSame(dataset.target, sentence.textContent));
  if (input) input.checked = true;
  attend(sentence.dataset.source, sentence.textContent);
  if (!isOpen) $("choices").scrollIntoView({ block: "nearest" });
}

/** Translates the chosen sentence again, and takes the best translation. */
async function translateSentence(prefixes) {
  const entry = await newestEntry({ prefixes });
  if (!entry) return null;
  $("choices").replaceChildren(entry);
  const input = entry.querySelector("input");
  input.checked = true;
  take(input);
  return entry;
}

/** Aborts the previous request; null if this one failed or was aborted itself. */
async function newestEntry(options) {
  choosing.abort();
  const { signal } = choosing = new AbortController();
  const { source } = chosen.dataset;
  const entry = await busy($("sentence"), () => "Translating\u2026",
    () => sentenceEntry(signal, source, options));
  if (signal.aborted) return null;
  $("choices").inert = false;
  return entry;
}

const phrases = () => $("required").control.value.match(/[^,\s]+(?:\s+[^,\s]+)*/g); // or null

const isEditable = ({ task, signatures = [] }) =>
  task !== "parsing" && signatures.includes("search_ids");

/**
 * One sentence with warnings, and its translations to choose from and possibly edit: `shown`, which
 * is on the page, and those that may begin with `prefixes`.
 */
async function sentenceEntry(signal, source, { shown, prefixes }) {
  const card = await model;
  const { beam_size: n_best = 1 } = card;
  const required_phrases = phrases() && [phrases()];
  const options = { prefixes, required_phrases, n_best, to: language, terminology,
    matches: card.has_memory };
  const answer = await ask("translate", { text: source, ...options }, signal);
  const { translations: [all], matches: [similar] = [[]] } = answer;
  // The same text may occur with different subwords: the first one is the best.
  const found = all.filter(({ text }, n) => all.findIndex((one) => one.text === text) === n);
  const number = (value, digits) => element("span", { class: "number" },
    value === null ? "\u2212\u221e" : value.toFixed(digits).replace("-", "\u2212"));
  const editable = isEditable(card);
  const editing = editable && { role: "textbox", "aria-label": "Translation", spellcheck: false,
    "aria-describedby": "editing", contenteditable: "plaintext-only" };
  const choice = (text, ...numbers) => element(
    editable ? "div" : "label", { class: "entry" },
    element("input", { type: "radio", name: "translation", "aria-label": text || "(nothing)",
      "data-target": text }),
    element("span", { dir: "auto", ...(text && editing) }, text || "(nothing)"), ...numbers);
  showCorrection(card, similar.some(({ similarity, is_correction }) =>
    similarity === 1 && is_correction));
  const others = similar.filter(({ translation }) =>
    !found.some(({ text }) => text === translation));
  const listed = [...found.map(({ text }) => text), ...others.map(({ translation }) => translation)];
  const isListed = shown === undefined || listed.some((text) => isSame(text, shown));
  return element("fieldset", {}, element("legend", { dir: "auto" }, source),
    ...warnings(source, found, card).map((text) => element("p", { class: "warning" }, text)),
    ...(isListed ? [] : [choice(shown)]),
    ...found.map(({ text, score, log_prob, from_memory }) => from_memory ? choice(text)
      : choice(text, number(score, 3), number(log_prob, 2))),
    ...(others.length ? [element("div", { class: "entry heading" },
      element("h3", {}, "Translations of similar sentences"),
      element("span", { class: "number similarity" }, "similarity"))] : []),
    ...others.flatMap(({ translation, similarity, difference }) => [
      choice(translation,
        element("span", { class: "number similarity" }, `${Math.floor(similarity * 100)}%`)),
      element("p", { class: "difference", dir: "auto" }, ...difference.map(changeOf))]));
}

/** A part of the difference between a sentence in the memory and the chosen one. */
function changeOf({ kind, text }) {
  return kind === "equal" ? text : element(kind === "delete" ? "del" : "ins", {}, text);
}

/** Shows what can be done about the correction of the chosen sentence, if the server saves any. */
function showCorrection(card, isCorrected) {
  $("correction").hidden = !card.has_corrections;
  $("remove").hidden = !isCorrected;
  const sources = (card.task_options?.directions ?? [])
    .filter(([source, target]) => [target, `${source}-${target}`].includes(language))
    .map(([code]) => code);
  const before = $("from").value;
  $("from").replaceChildren(
    ...sources.map((code) => element("option", { value: code }, nameOf(code) ?? code)));
  if (sources.includes(before)) $("from").value = before;
  $("from").hidden = sources.length < 2;
}

/** The chosen sentence as the server identifies its correction. */
const correctedSentence = () => ({ source: chosen.dataset.source, to: language,
  source_language: $("from").hidden ? undefined : $("from").value });

/** Saves the chosen sentence's translation as its correction, which is used from now on. */
async function saveCorrection() {
  const sentence = correctedSentence(), translation = chosen.textContent;
  const terms = terminology, key = keyOf(sentence.source);
  $("saved").textContent = "";
  const said = await busy($("sentence"), () => "Saving\u2026", async () => {
    const saved = await ask("corrections", { ...sentence, translation });
    forgetAnswers(sentence.source);
    const newest = edits.get(key)?.translation ?? translation; // the user may have typed more
    if (newest === translation) edits.set(key, { translation: saved.translation, isSaved: true });
    showAgain(key);
    if (terms) {
      const { translations: [[best]] } = await ask("translate",
        { text: sentence.source, to: sentence.to, terminology: terms });
      if (!best.from_memory) return `Saved, but not used with the terms of ${terms}: it lacks one`;
    }
    if (edits.get(key)?.isSaved) edits.delete(key); // from now on, the server answers it
    showAgain(key, { translation: saved.translation, from_memory: true });
    return edits.has(key) ? "" : "Saved";
  });
  if (said === null || chosen?.dataset.source !== sentence.source) return;
  $("saved").textContent = said;
  $("remove").hidden = false;
}

/** Removes the correction of the chosen sentence, which the model then translates again. */
async function removeCorrection() {
  const sentence = correctedSentence(), key = keyOf(sentence.source);
  $("saved").textContent = "";
  const removed = await busy($("sentence"), () => "Removing\u2026",
    () => ask("corrections", sentence, undefined, "DELETE"));
  if (removed === null) return;
  forgetAnswers(sentence.source);
  if (chosen?.dataset.source !== sentence.source || !await translateSentence()) return;
  const translation = chosen.textContent;
  edits.delete(key);
  showAgain(key, { translation, from_memory: false });
  $("saved").textContent = "Removed";
  $("save").focus(); // the button is gone
}

/** Forgets answers that may have a sentence, so that they are requested again. */
function forgetAnswers(source) {
  for (const [key, { sentences }] of lines) {
    if (!sentences || sentences.some((sentence) => sentence.source === source)) lines.delete(key);
  }
}

/** Warnings about a sentence and its translations. */
function warnings(text, translations, { task, max_source_length }) {
  const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
  const several = task === "parsing" && [...sentences.segment(text)].length > 1;
  return [
    several && "This model parses one sentence at a time: put each on a separate line.",
    translations[0].truncated && "This sentence is too long: only its first " +
      `${max_source_length - 1} subwords were translated.`,
    translations[0].unfinished && "The translation reached the length limit before its end.",
    translations[0].without_terms?.length && `${lackOf(translations[0].without_terms)}.`,
  ].filter(Boolean);
}

/** Takes a translation, possibly edited, for the chosen sentence. */
function take(input) {
  keepEdit(input.dataset.target && input.nextSibling.textContent);
  attend(chosen.dataset.source, input.dataset.target);
}

// Enter in a translation keeps the text before the cursor, and regenerates the rest. An unedited
// word that contains the cursor is dropped. Ctrl+Enter saves a correction.
async function goOn(event) {
  const box = event.target, text = box.textContent;
  if (event.key !== "Enter" || !box.isContentEditable) return;
  event.preventDefault();
  const isSaved = (event.ctrlKey || event.metaKey) && !$("correction").hidden;
  if (isSaved) return saveCorrection();
  const range = getSelection().getRangeAt(0).cloneRange();
  range.setStart(box, 0);
  const { target } = box.previousSibling.dataset, before = range.toString();
  const inWord = text === target && /^\p{L}/u.test(text.slice(before.length));
  const prefix = inWord ? before.replace(/\p{L}+$/u, "") : before;
  const entry = await translateSentence([prefix]);
  if (!entry) return; // keep the typed text
  entry.querySelector("[role=textbox]").focus();
  for (const _ of prefix) getSelection().modify("move", "forward", "character");
}

/** Shows the attention for a sentence and its translation, if the model provides it. */
async function attend(source, target) {
  const { max_source_length: readAtMost, signatures = [] } = await model;
  if (!signatures.includes("attention_ids")) return;
  attending = [source, target];
  $("attention").hidden = false;
  if (!$("attention").open) return; // it is computed when it is opened
  const pair = attended = JSON.stringify([source, target, language]);
  $("figure").classList.add("stale");
  const attention = await busy($("attention"), () => "Computing attention\u2026", async () => {
    if (!attentions.has(pair)) {
      attentions.set(pair, await ask("attention", { source, target, to: language }));
    }
    return attentions.get(pair);
  });
  if (attended !== pair) return; // another sentence was chosen meanwhile
  $("figure").hidden = attention === null;
  if (attention === null) return;
  showAttention($("figure"), { ...attention, readAtMost });
  $("figure").classList.remove("stale");
}
