// WordPiece: words, split greedily into the longest pieces; see core/vocabulary/wordpiece.py.

import { SPACE } from "./normalization.js";

const JOINER = "##"; // prefix of pieces that continue a word
const LETTER = "[\\p{L}\\p{N}\\p{M}]";
const SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar"];
const UNSPACED = new RegExp(`[${SCRIPTS.map((name) => `\\p{Script=${name}}`).join("")}]`, "gu");
const SPACE_BETWEEN = new RegExp(`(?<=${LETTER}) (?=${LETTER})`, "gu");
const WORD = new RegExp(`${LETTER}+|#|[^\\p{L}\\p{N}\\p{M}#\\n]+`, "gu");

export class WordPieces {
  constructor({ ids }) {
    this.pieces = new Set(ids);
    this.longest = ids.reduce((most, piece) => Math.max(most, Array.from(piece).length), 0);
    this.known = new Map(); // cached pieces of words
  }

  /** The pieces of a text: strings, of which some may be unknown. */
  cut(text) {
    return words(text).flatMap((word) => {
      if (!this.known.has(word)) this.known.set(word, this.cutWord(Array.from(word)));
      return this.known.get(word);
    });
  }

  cutWord(characters) {
    const pieces = [];
    for (let start = 0; start < characters.length;) {
      let end = Math.min(characters.length, start + this.longest);
      const piece = () => (start ? JOINER : "") + characters.slice(start, end).join("");
      while (end > start + 1 && !this.pieces.has(piece())) end -= 1;
      pieces.push(piece());
      start = end;
    }
    return pieces;
  }
}

function words(text) {
  const marked = text.replaceAll("\0", "\ufffd").replace(/[\r\n]/g, " ")
    .replace(UNSPACED, "\n$&\n").replace(SPACE_BETWEEN, "\n").replaceAll(" ", SPACE);
  return marked.match(WORD) ?? [];
}

/** The text that the texts of pieces make; see _spelling in core/vocabulary/wordpiece.py. */
export function joined(texts) {
  return texts.join("").replaceAll("\r\n", " ").replaceAll(SPACE, " ").replace(/[\r\n]/g, "");
}
