// SentencePiece models: text is split by byte-pair merges, or into the most probable pieces under a
// unigram model. See page_vocabulary.py for a model's fields.

import { Normalizer, Prefixes, utf8 } from "./normalization.js";

const UNKNOWN_PENALTY = 10; // below the lowest score
const SMALLEST = 2 ** -126; // positive float32, SentencePiece's initial value of the maximum

export class SentencePieces {
  constructor(model) {
    this.model = model;
    this.scores = new Map(model.pieces.map((piece, i) => [piece, Math.fround(model.scores[i])]));
    this.symbols = new Prefixes(model.symbols); // never split
    this.normalizer = new Normalizer(model, this.symbols);
    this.longest = new Prefixes(model.pieces).longest;
    const scores = model.pieces.filter((piece) => !this.symbols.strings.has(piece))
      .map((piece) => this.scores.get(piece));
    this.lowest = scores.reduce((least, score) => Math.min(least, score), Infinity);
    this.highest = scores.reduce((most, score) => Math.max(most, score), SMALLEST);
  }

  /** The pieces of a text: strings, some possibly unknown. */
  cut(text) {
    const characters = Array.from(this.normalizer.normalize(text));
    const pieces = this.model.algorithm === "bpe" ? this.merged(characters) : this.best(characters);
    return this.spelled(pieces);
  }

  /** Byte-pair encoding: merges the adjacent pair with the best score, the leftmost first. */
  merged(characters) {
    const parts = []; // {text, frozen: never merged}
    for (let place = 0; place < characters.length;) {
      const symbol = this.symbols.match(characters, place);
      const length = symbol || 1;
      const text = characters.slice(place, place + length).join("");
      parts.push({ text, frozen: symbol > 0 });
      place += length;
    }
    const scoreAt = (place) => { // of merging the part at a place with the next one
      const [left, right] = [parts[place], parts[place + 1]];
      if (!left || !right || left.frozen || right.frozen) return -Infinity;
      return this.scores.get(left.text + right.text) ?? -Infinity;
    };
    const scores = parts.map((_, place) => scoreAt(place));
    while (true) {
      let best = 0;
      for (let place = 1; place < scores.length; place += 1) {
        if (scores[place] > scores[best]) best = place;
      }
      if (!(scores[best] > -Infinity)) break;
      parts.splice(best, 2, { text: parts[best].text + parts[best + 1].text, frozen: false });
      scores.splice(best, 2, scoreAt(best));
      if (best > 0) scores[best - 1] = scoreAt(best - 1);
    }
    return parts.map(({ text }) => text);
  }

  /** The pieces with the greatest sum of scores; sums are float32, as in SentencePiece. */
  best(characters) {
    const paths = Array.from({ length: characters.length + 1 }, () => null);
    paths[0] = { score: 0 };
    const reach = (start, end, text, score) => {
      const total = Math.fround(score + paths[start].score);
      if (paths[end] && total <= paths[end].score) return;
      paths[end] = { score: total, start, text };
    };
    for (let start = 0; start < characters.length; start += 1) {
      let text = "";
      const last = Math.min(characters.length, start + this.longest);
      for (let end = start + 1; end <= last; end += 1) {
        text += characters[end - 1];
        if (this.scores.has(text)) {
          reach(start, end, text, this.scoreOf(text));
        } else if (end === start + 1) {
          reach(start, end, text, Math.fround(this.lowest - UNKNOWN_PENALTY));
        }
      }
    }
    const pieces = [];
    for (let end = characters.length; end > 0; end = paths[end].start) pieces.push(paths[end].text);
    return pieces.reverse();
  }

  scoreOf(piece) {
    const isSymbol = this.symbols.strings.has(piece); // always chosen
    if (!isSymbol) return this.scores.get(piece);
    return Math.fround(utf8(piece).length * this.highest - 0.1);
  }

  /** Spells unknown pieces in bytes, or else joins adjacent unknown pieces. */
  spelled(pieces) {
    const result = [];
    let follows = false; // an unknown piece
    for (const piece of pieces) {
      const unknown = !this.scores.has(piece);
      if (unknown && this.model.has_bytes) result.push(...Array.from(utf8(piece), nameOfByte));
      else if (unknown && follows) result.push(result.pop() + piece);
      else result.push(piece);
      follows = unknown;
    }
    return result;
  }
}

const nameOfByte = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
