// Text to ids and back, as in core/vocabulary/subwords.py; page_vocabulary.py writes its data.

import { SPACE, fromUtf8 } from "./normalization.js";
import { SentencePieces } from "./sentencepiece.js";
import { WordPieces, joined } from "./wordpiece.js";

export const [PAD, BOS, EOS, UNKNOWN] = [0, 1, 2, 3];
// Python's \s, without U+FEFF, which is white space to JavaScript alone.
const BLANK = /^[\p{White_Space}\p{Z}\p{Cc}]*$/u;

export class Vocabulary {
  constructor(json) {
    this.json = json;
    this.ids = new Map(json.ids.map((piece, id) => [piece, id]));
    this.code = json.code && new RegExp(json.code);
    this.cutter = json.kind === "wordpiece" ? new WordPieces(json) : new SentencePieces(json);
  }

  /** The ids of a text, without EOS; none for a blank text, even with a code. */
  encode(text) {
    const encodable = text.replace(/\p{Surrogate}/gu, "?"); // lone surrogates
    const code = this.code?.exec(encodable);
    const rest = encodable.slice(code?.[0].length ?? 0);
    if (BLANK.test(rest)) return [];
    const first = code ? [this.json.codes[code[1]] ?? UNKNOWN] : [];
    return [...first, ...this.cutter.cut(rest).map((piece) => this.idOf(piece))];
  }

  idOf(piece) {
    return this.ids.get(piece) ?? UNKNOWN;
  }

  /** The text of ids up to the first EOS. */
  decode(ids) {
    const end = ids.indexOf(EOS);
    const texts = ids.slice(0, end < 0 ? ids.length : end).map((id) => this.json.texts[id])
      .filter((text) => text !== null);
    if (this.json.kind === "wordpiece") return joined(texts);
    if (this.json.trimmed) return written(texts).replace(/^[ \t-\r]+|[ \t-\r]+$/g, "");
    return written(this.withoutFirstSpace(texts));
  }

  /** Removes leading pieces that are spaces, and the leading space of the next piece. */
  withoutFirstSpace(texts) {
    const begin = texts.findIndex((text) => text !== SPACE);
    if (begin < 0) return [];
    const [first, ...rest] = texts.slice(begin);
    const mayLose = this.json.dummy_prefix || this.json.extra_spaces;
    const isWord = mayLose && typeof first === "string" && first.startsWith(SPACE);
    return [isWord ? first.slice(1) : first, ...rest];
  }
}

/** Joins strings, and bytes as numbers, to one text. */
function written(texts) {
  let text = "", bytes = [];
  for (const part of [...texts, ""]) {
    if (typeof part === "number") {
      bytes.push(part);
    } else {
      text += spelled(bytes) + part;
      bytes = [];
    }
  }
  return text.replaceAll(SPACE, " ");
}

/** The characters that bytes spell, and U+FFFD for each byte that is part of none. */
function spelled(bytes) {
  let text = "";
  for (let place = 0; place < bytes.length;) {
    const first = bytes[place];
    const length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = fromUtf8(Uint8Array.from(bytes.slice(place, place + length)));
    const isOne = Array.from(character).length === 1 && character !== "\ufffd";
    text += isOne ? character : "\ufffd";
    place += isOne ? length : 1;
  }
  return text;
}
