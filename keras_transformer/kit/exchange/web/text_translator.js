// Texts in, translations out: the answers of POST /translate (kit/serving/responses.py), from a model in
// this browser.

import { search } from "./beam_search.js";
import { caseOf, inSentenceCase } from "./case.js";
import { withoutEdges } from "./placeholders.js";
import { cut, isUnspaced, split } from "./sentences.js";
import { EOS } from "./vocabulary.js";

const SENTENCES = 8; // per batch: few enough for early first translations, enough for efficient products

export class TextTranslator {
  /**
   * model: see beam_search.js
   * source, target: Vocabularies
   * card: what page.py writes of the model
   */
  constructor(model, source, target, card) {
    Object.assign(this, { model, source, target, card });
    this.languages = card.task_options?.target_languages ?? [];
  }

  /** Answers the fields of a request; `pause` is called between steps, and may throw. */
  async answer({ text, prefixes, n_best, document, format, to }, pause) {
    require(to === undefined || this.languages.includes(to), "The language must be one of the " +
      `model's: ${this.languages.join(", ") || "it has only one"}. Received: ${to}`);
    const code = this.languages.length ? `>>${to ?? this.languages[0]}<< ` : "";
    if (document !== undefined) return this.document(document, format, code, pause);
    const [found] = await this.translate([text], code, pause, this.card.beam_size, prefixes);
    return { translations: [found.slice(0, n_best)] };
  }

  /** Translates sentences, best first; the first `guaranteed` translations are the best ones. */
  async translate(texts, code, pause, guaranteed, prefixes = []) {
    const { max_source_length, beam_size, alpha, early_stopping: earlyStopping } = this.card;
    const requests = texts.map((text, n) => {
      const all = this.source.encode(code + text);
      const ids = [...all.slice(0, max_source_length - 1), EOS];
      const prefix = this.target.encode((prefixes[n] ?? "").trim());
      const most = this.maxLength(ids) - 1;
      require(prefix.length <= Math.max(most, 0), "The beginning of the translation must have at " +
        `most ${most} subwords for this sentence. Received: ${prefix.length}`);
      return { ids, prefix, truncated: all.length > max_source_length - 1 };
    });
    const maxLength = (ids) => this.maxLength(ids);
    const options = { beams: beam_size, alpha, guaranteed, maxLength, earlyStopping };
    const found = await search(this.model, requests, options, pause);
    return found.map((hypotheses, n) => hypotheses.map(({ ids, score, logProb }) => ({
      text: this.target.decode(ids),
      score,
      log_prob: logProb,
      truncated: requests[n].truncated,
      unfinished: ids.length > 0 && ids.at(-1) !== EOS,
    })));
  }

  /** The maximum number of ids in a translation; 0 for an empty source, which is EOS alone. */
  maxLength(ids) {
    const { extra_length, max_target_length } = this.card;
    return ids.length > 1 ? Math.min(ids.length + extra_length, max_target_length) : 0;
  }

  /** Translates the sentences of a text; offsets in `sentences` count code points. */
  async document(text, format, code, pause) {
    const whole = format === "wrapped" ? unwrapped(text) : text;
    const [given] = this.card.data?.languages ?? [];
    const language = /^[a-z]{2,3}(?![a-z])/.exec(given)?.[0] ?? "en";
    const parts = whole.split("\n").map((line) => this.sentencesOf(line, language, code));
    const known = await this.best(parts.flatMap(({ sentences }) => sentences), code, pause);
    const written = { text: "", length: 0, sentences: [] };
    parts.forEach(({ sentences, between }, n) => {
      write(written, n ? `\n${between[0]}` : between[0]);
      sentences.forEach((sentence, k) => {
        const translation = taken(sentence, known.get(sentence.given));
        const start = written.length;
        write(written, translation);
        written.sentences.push({ source: sentence.text, translation, start, end: written.length });
        const lacksSpace = k + 1 < sentences.length && between[k + 1] === "" &&
          isUnspaced(sentence.text.at(-1)) && !isUnspaced(translation.at(-1) ?? " ");
        write(written, lacksSpace ? " " : between[k + 1]);
      });
    });
    return { translation: written.text, sentences: written.sentences };
  }

  /**
   * The sentences of a line, and what is beside them. A sentence is {text, given: what the model
   * gets, kind: its case, before, after: what stays at its edges}.
   */
  sentencesOf(line, language, code) {
    const limit = this.card.max_source_length - 1;
    const count = (text) => this.source.encode(code + text).length;
    const spans = split(line, language).flatMap((span) => cut(line, span, limit, count));
    const sentences = spans.map(([start, end]) => {
      const text = line.slice(start, end);
      const [before, core, after] = withoutEdges(text);
      const kind = caseOf(core, language);
      const given = kind === "sentence" ? core : inSentenceCase(core);
      return { text, before, after, kind, given };
    });
    const ends = [0, ...spans.map(([, end]) => end)];
    const starts = [...spans.map(([start]) => start), line.length];
    return { sentences, between: ends.map((end, n) => line.slice(end, starts[n])) };
  }

  /** The best translations of sentences, each translated once, batched by length. */
  async best(sentences, code, pause) {
    const texts = [...new Set(sentences.map(({ given }) => given))].filter((text) => text !== "");
    texts.sort((one, other) => one.length - other.length);
    const known = new Map();
    for (let start = 0; start < texts.length; start += SENTENCES) {
      const batch = texts.slice(start, start + SENTENCES);
      const found = await this.translate(batch, code, pause, 1);
      batch.forEach((text, n) => known.set(text, found[n][0].text));
    }
    return known;
  }
}

/** The translation of a sentence; the sentence itself if the translation is empty. */
function taken({ text, given, kind, before, after }, translation = "") {
  if (translation === given || !translation.trim()) return text;
  const line = translation.replace(/[\r\n]/g, " ");
  return before + (kind === "capitals" ? line.toUpperCase() : line) + after;
}

function write(written, text) {
  written.text += text;
  written.length += Array.from(text).length;
}

/** Joins paragraphs that span several lines into one line each; list items begin lines. */
function unwrapped(text) {
  return text.replace(/(?<=^.{39,}\S)[ \t]*\n[ \t>]*(?![-*+\u2022]\s|\d{1,3}[.)]\s|\s)(?=\S)/gm, " ");
}

function require(condition, message) {
  if (!condition) throw new Error(message);
}
