// Sentence boundaries (from Intl.Segmenter, corrected as in kit/documents/tree/sentences.py), and where to
// split a sentence that is too long for the model. Spans are [start, end) in UTF-16.

// In these languages "am 3. Mai" means "on the third of May".
const DOTTED_ORDINALS = ["cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nb", "nn", "no", "pl",
  "sk", "sl", "tr"];
const ORDINAL = /(?<![\p{L}\p{N}_.,])\d{1,3}\.$/u;
const INITIAL = /(?<![\p{L}\p{N}_])\p{Lu}\.$/u; // "M.| Blair"
const LETTER = /(?<![\p{L}\p{N}_])\p{L}\.$/u; // "z.| B."
const TITLE = /(?<![\p{L}\p{N}_])(Mrs?|Ms|Dr|Prof|St|Nr|No|vs|Hr|Fr|Mme|Mlle|Sr|Sra)\.$/u;
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]/;
// "garden. 2 girls": the browser mistakes it for "Nr. 5 is".
const BEFORE_NUMBER = /(?<=\p{Ll}{3}[.!?]["'\u201d\u2019)]*)\s+(?=\d)/gu;
// "A man walks |A dog runs": a sentence that begins without a preceding full stop.
const BEGINS_IN_ENGLISH = new RegExp("(?<![\\p{L}\\p{N}_'\u2019-])(?!(?:the|a|an|of|to|and|or|in|for|" +
  "by|with|from|vitamin|type|class|plan) )[a-z]{2,} (?=An? (?!is|was|and|or)[A-Za-z][a-z]+ |" +
  "(?:The|Two|Three|Four|Five|Several|Some|There|This|These|He|She|It|They|We|People|Men|Women|" +
  "Children|Kids|Man|Woman|Boy|Girl|His|Her|Their|Young|Old|Group) [a-z]{2,})", "gu");
const ENDS_UNSPACED = new RegExp(`${UNSPACED.source}["'\u201d\u2019]*$`);
const CUTS = [ // best places first, and how far from the middle they may be
  [/(?<=[;:])\s|\s(?=[\u2014\u2013-]\s)|(?<=[\uff1b\uff1a])/g, 1 / 3],
  [/(?<=,)\s|(?<=[\uff0c\u3001])/g, 1 / 3],
  [/\s+/g, 1],
];
const MOST_CHARACTERS = 64; // no subword is that long

/** The spans of a paragraph's sentences: only spaces are outside them. */
export function split(text, language) {
  const segmenter = new Intl.Segmenter(language, { granularity: "sentence" });
  const found = new Set(Array.from(segmenter.segment(text), ({ index }) => index));
  for (const { index, 0: space } of text.matchAll(BEFORE_NUMBER)) found.add(index + space.length);
  found.delete(0);
  const starts = [...found].filter((index) =>
    ends(text.slice(Math.max(0, index - 80), index), text.slice(index, index + 2), language));
  const begins = language === "en" ? [...text.matchAll(BEGINS_IN_ENGLISH)] : [];
  starts.push(...begins.map(({ index, 0: word }) => index + word.length));
  return trimmed(text, [...new Set([0, ...starts])].sort((one, other) => one - other));
}

export const isUnspaced = (character) => UNSPACED.test(character);

function ends(passed, after, language) {
  const before = passed.trimEnd();
  if (before === passed && !ENDS_UNSPACED.test(before)) return false; // "b?|c" in a URL
  if (INITIAL.test(before) || TITLE.test(before)) return false;
  if (LETTER.test(before) && /^\p{L}\./u.test(after)) return false;
  return !(DOTTED_ORDINALS.includes(language.split(/[-_]/)[0]) && ORDINAL.test(before));
}

/** Spans from the places where they begin, without surrounding spaces. */
function trimmed(text, starts, to = text.length) {
  return starts.map((start, n) => {
    const part = text.slice(start, starts[n + 1] ?? to);
    const begin = start + part.length - part.trimStart().length;
    return [begin, start + part.trimEnd().length];
  }).filter(([start, end]) => start < end);
}

/** Splits a sentence near its middle, recursively, into parts of at most `limit` subwords. */
export function cut(text, span, limit, countSubwords) {
  const [start, end] = span;
  const isShort = end - start <= limit * MOST_CHARACTERS;
  if (isShort && countSubwords(text.slice(start, end)) <= limit) return [span];
  const place = middle(text, start, end);
  if (place === undefined) return [span];
  return trimmed(text, [start, place], end)
    .flatMap((part) => cut(text, part, limit, countSubwords));
}

function middle(text, start, end) {
  const distance = (place) => Math.abs(place - (start + end) / 2);
  const nearest = (places) => places.reduce((best, place) =>
    best === undefined || distance(place) < distance(best) ? place : best, undefined);
  for (const [pattern, share] of CUTS) {
    const found = [...text.slice(start, end).matchAll(pattern)];
    const places = found.map((match) => start + match.index + match[0].length)
      .filter((place) => place > start && place < end && distance(place) < (end - start) * share);
    if (places.length) return nearest(places);
  }
  return end - start > 1 ? Math.floor((start + end) / 2) : undefined;
}
