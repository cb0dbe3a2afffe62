// Beam search with a length penalty (section 6.1), as in core/search/beam_search.py: log P(Y) / lp(Y)
// with lp(Y) = ((5 + |Y|) / 6)^alpha. Sums are float32, as there.

import { BOS, EOS } from "./vocabulary.js";

const penalty = (length, alpha) => Math.fround(Math.fround((5 + length) / 6) ** alpha);

/** The search of one sentence. Hypotheses are {ids, logProb}, and finished ones have a `score`. */
class Sentence {
  constructor({ ids, prefix = [] }, maxLength, { beams, alpha, guaranteed, earlyStopping }) {
    Object.assign(this, { ids, prefix, maxLength, beams, alpha, guaranteed, earlyStopping });
    this.alive = [{ ids: [], logProb: 0, parent: 0 }]; // parent: row of the previous step
    this.finished = []; // the best of those with EOS
    this.running = maxLength > 0;
  }

  /**
   * Extends all hypotheses by one token.
   *
   * logProbs: Float32Array, for each alive hypothesis the log-probabilities of V tokens.
   */
  extend(logProbs, V) {
    const position = this.alive[0].ids.length;
    const given = this.prefix[position];
    const best = given === undefined ? this.best(logProbs, V)
      : this.alive.map(({ logProb }, parent) => ({ parent, token: given,
        logProb: Math.fround(logProb + logProbs[parent * V + given]) }));
    const extended = best.map(({ parent, token, logProb }) => ({ parent, logProb,
      ids: [...this.alive[parent].ids, token] }));
    const hasEnded = ({ ids }) => ids.at(-1) === EOS;
    this.keep(extended.filter(hasEnded));
    this.alive = extended.filter((each) => !hasEnded(each)).slice(0, this.beams);
    const worst = this.finished[this.guaranteed - 1]?.score ?? -Infinity;
    // Log probabilities only decrease, and the penalty grows with the length.
    const longest = this.earlyStopping ? position + 1 : this.maxLength;
    this.running = this.alive.length > 0 && position + 1 < this.maxLength &&
      Math.fround(this.alive[0].logProb / penalty(longest, this.alpha)) > worst;
  }

  /** The best extensions: twice as many as beams, at most half of which end. */
  best(logProbs, V) {
    const count = this.beams === 1 ? 1 : 2 * this.beams;
    const found = []; // best first
    let least = -Infinity;
    for (let parent = 0; parent < this.alive.length; parent += 1) {
      const before = this.alive[parent].logProb;
      for (let token = 0, place = parent * V; token < V; token += 1, place += 1) {
        const logProb = Math.fround(before + Math.min(logProbs[place], 0));
        if (!(logProb > least)) continue;
        let rank = found.length;
        while (rank > 0 && found[rank - 1].logProb < logProb) rank -= 1;
        found.splice(rank, 0, { parent, token, logProb });
        if (found.length > count) found.pop();
        if (found.length === count) least = found[count - 1].logProb;
      }
    }
    return found;
  }

  keep(ended) {
    const scored = ended.map((each) => ({ ...each,
      score: Math.fround(each.logProb / penalty(each.ids.length, this.alpha)) }));
    this.finished = [...this.finished, ...scored] // the sort is stable
      .sort((one, other) => other.score - one.score).slice(0, this.beams);
  }

  /** The hypotheses, best first; alive ones if none ended within the length limit. */
  result() {
    if (this.maxLength === 0) return [{ ids: [], score: 0, logProb: 0 }];
    if (this.finished.length) return this.finished;
    const last = penalty(this.maxLength, this.alpha);
    return this.alive.map((each) => ({ ...each, score: Math.fround(each.logProb / last) }));
  }
}

/**
 * Searches the translations of a batch.
 *
 * model: has encode(sources) and step(tokens, parents, memory, cache), see model.js
 * requests: [{ids: of the source, with EOS; prefix: ids that the target begins with}]
 * options: {beams, alpha, guaranteed: how many of the hypotheses must be the best ones,
 *   maxLength(ids): length limit of a translation, earlyStopping: see core/search/config.py}
 * pause: called between steps, and may throw
 *
 * Returns for each request its hypotheses, [{ids, score, logProb}], best first.
 */
export async function search(model, requests, options, pause = () => {}) {
  const sentences = requests.map((each) => new Sentence(each, options.maxLength(each.ids), options));
  let running = sentences.filter((each) => each.running);
  let memory = running.length ? await model.encode(running.map(({ ids }) => ids)) : null;
  let cache = null, rows = 1; // hypotheses of a sentence
  let tokens = running.map(() => BOS), parents = running.map(() => 0);
  while (running.length) {
    await pause();
    const { logProbs, V, cache: longer } = await model.step(tokens, parents, memory, cache);
    running.forEach((each, n) => each.extend(logProbs.subarray(n * rows * V, (n + 1) * rows * V), V));
    const places = [...running.keys()].filter((n) => running[n].running);
    if (places.length < running.length) memory = model.chosen(memory, places); // finished sentences leave
    const width = Math.max(0, ...places.map((n) => running[n].alive.length));
    const next = places.flatMap((n) => padded(running[n].alive, width)
      .map(({ ids, parent }) => ({ token: ids.at(-1), parent: n * rows + parent })));
    tokens = next.map(({ token }) => token);
    parents = next.map(({ parent }) => parent);
    running = places.map((n) => running[n]);
    [cache, rows] = [longer, width];
  }
  return sentences.map((each) => each.result());
}

/** Padding hypotheses, to give all sentences the same number of rows. */
function padded(alive, width) {
  return [...alive, ...Array.from({ length: width - alive.length }, () => alive[0])];
}
