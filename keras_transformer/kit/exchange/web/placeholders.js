// Text around a sentence that is not translated and is put back: list markers, emoji and URLs; see
// kit/documents/tree/placeholders.py. Such text inside a sentence goes to the model, as there is no alignment
// to put it back.

const SIGN = "[-=\u2013\u2014]*>+|[-\u2013\u2014*+#\u2022\u2023\u2043\u25e6\u2219\u00b7\u2192" +
  "\u21d2\u25a0-\u25ff]+|\\[[ xX]?\\]|\\(?(?:\\d{1,3}|[A-Za-z]|[ivxIVX]{2,4})\\)";
const EMOJI = "[\\u{1f000}-\\u{1faff}\\u2600-\\u27bf\\u2b00-\\u2bff][\\ufe0f\\u200d\\u20e3]*";
const ADDRESS = "(?:https?|ftp|ssh|git)://\\S*[^\\s.,;:!?)\\]}'\"\u201d\u2019]|" +
  "[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)*\\.\\p{L}{2,}";
const BEFORE = new RegExp(`^(?:(?:${SIGN})\\s+|(?:${EMOJI})\\s*|(?:${ADDRESS})\\s+)+`, "u");
const AFTER = new RegExp(`(?:\\s*(?:${EMOJI})|\\s+(?:${ADDRESS}))+$`, "u");
const ALONE = new RegExp(`^(?:${ADDRESS})[.,;:!?)]*$`, "u");

/** Splits a sentence into [text before, text to translate, text after]. */
export function withoutEdges(text) {
  if (ALONE.test(text) || !/\p{L}/u.test(text)) return [text, "", ""];
  const before = BEFORE.exec(text)?.[0] ?? "";
  const rest = text.slice(before.length);
  const after = AFTER.exec(rest)?.[0] ?? "";
  return [before, rest.slice(0, rest.length - after.length), after];
}
