// Capitals and English titles, which the model receives as sentences; see kit/documents/tree/case.py.

const WORD = /\p{L}+(?:['\u2019]\p{L}+)*/gu;
const FEWEST_CAPITALS = 2; // words: "NATO" alone is a name
const FEWEST_IN_TITLE = 5; // capitalized words: "Dr. John Smith, Berlin" is no title
const LONG = 5; // letters: shorter words of a title need not be capitalized
const SMALL_IN_TITLES = new Set(("a an and as at but by for from in into nor of off on onto or over " +
  "per the to up via vs with").split(" ")); // words that titles need not capitalize

/** "capitals", "title" or "sentence". */
export function caseOf(text, language) {
  const words = text.match(WORD) ?? [], letters = words.join("");
  const isUpper = letters === letters.toUpperCase() && letters !== letters.toLowerCase();
  if (words.length >= FEWEST_CAPITALS && isUpper) return "capitals";
  return language.startsWith("en") && isTitle(text, words) ? "title" : "sentence";
}

function isTitle(text, words) {
  const capitalized = words.filter((word) => /^\p{Lu}/u.test(word)).length;
  const long = words.filter((word) => word.length >= LONG);
  const mayBeInTitles = (word) => !/^\p{Ll}/u.test(word) || SMALL_IN_TITLES.has(word);
  return capitalized >= Math.max(FEWEST_IN_TITLE, words.length / 2) &&
    (!text.endsWith(".") || words.every(mayBeInTitles)) &&
    long.every((word) => /^(\p{Lu}\p{Ll}*(['\u2019]|$))+$/u.test(word));
}

/** A sentence in lowercase after its first letter. */
export function inSentenceCase(text) {
  const first = text.search(/\p{L}/u);
  const end = first < 0 ? 0 : first + String.fromCodePoint(text.codePointAt(first)).length;
  return text.slice(0, end) + text.slice(end).toLowerCase();
}
