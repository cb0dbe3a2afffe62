// SentencePiece's normalization: rules that replace characters, and the handling of spaces.

export const SPACE = "\u2581"; // in pieces
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
export const utf8 = (text) => ENCODER.encode(text);
export const fromUtf8 = (bytes) => DECODER.decode(bytes);

/**
 * A model's rules: strings and their replacements; the longest match at a place applies.
 *
 * charsmap: the number of bytes of a double array (Darts), this array, uint32 each, and the
 *   replacements, each of which ends in a zero; empty for no rules.
 */
class Rules {
  constructor(charsmap) {
    const size = charsmap.length ? new DataView(charsmap.buffer).getUint32(0, true) : 0;
    this.units = new Uint32Array(charsmap.slice(4, 4 + size).buffer);
    this.texts = charsmap.slice(4 + size);
  }

  /** The replacement for the characters from `start`: [text, number of characters], or null. */
  match(characters, start) {
    const { units } = this;
    if (!units.length) return null;
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let node = offset(units[0]), found = null;
    for (let end = start; end < characters.length; end += 1) {
      for (const byte of utf8(characters[end])) {
        node ^= byte;
        if ((units[node] & 0x800000ff) !== byte) return found;
        const next = node ^ offset(units[node]);
        if (units[node] & 256) found = [units[next] & 0x7fffffff, end + 1 - start];
        node = next;
      }
    }
    return found;
  }

  replacement(place) {
    return fromUtf8(this.texts.subarray(place, this.texts.indexOf(0, place)));
  }
}

/** Finds the longest of some strings at a place in a text. */
export class Prefixes {
  constructor(strings) {
    this.strings = new Set(strings);
    this.longest = strings.reduce((most, text) => Math.max(most, Array.from(text).length), 0);
  }

  /** The number of characters matched; 0 for no match. */
  match(characters, start) {
    for (let length = Math.min(this.longest, characters.length - start); length > 0; length -= 1) {
      if (this.strings.has(characters.slice(start, start + length).join(""))) return length;
    }
    return 0;
  }
}

export class Normalizer {
  /** symbols: Prefixes that no rule changes; page_vocabulary.py describes the rest. */
  constructor({ charsmap, dummy_prefix, extra_spaces, suffix }, symbols) {
    const bytes = Uint8Array.from(atob(charsmap), (character) => character.charCodeAt(0));
    this.rules = new Rules(bytes);
    Object.assign(this, { dummy_prefix, extra_spaces, suffix, symbols });
  }

  /** The text with SPACE instead of spaces. */
  normalize(text) {
    const parts = [];
    const characters = Array.from(text);
    for (let place = 0; place < characters.length;) {
      const [part, length] = this.next(characters, place);
      parts.push(part);
      place += length;
    }
    let normal = parts.join("");
    if (this.extra_spaces) normal = normal.replace(/^ +|[ \u2581]+$/g, "").replace(/ +/g, " ");
    if (normal === "" && (this.extra_spaces || text === "")) return "";
    if (this.dummy_prefix) normal = this.suffix ? `${normal} ` : ` ${normal}`;
    return normal.replaceAll(" ", SPACE);
  }

  next(characters, place) {
    const symbol = this.symbols.match(characters, place);
    if (symbol) return [characters.slice(place, place + symbol).join(""), symbol];
    const found = this.rules.match(characters, place);
    return found ? [this.rules.replacement(found[0]), found[1]] : [characters[place], 1];
  }
}
