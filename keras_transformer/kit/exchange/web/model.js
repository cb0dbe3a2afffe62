// The two graphs of a model, encoder.onnx and decoder.onnx (docs/reference/onnx.md).

import { PAD } from "./vocabulary.js";

export class Model {
  /** ort: the runtime's module; encoder and decoder: its sessions; config: from the model card. */
  constructor(ort, encoder, decoder, config) {
    Object.assign(this, { ort, encoder, decoder, config });
    this.layers = [...Array(config.decoder_layers ?? config.num_layers).keys()];
  }

  /** Rows of ids -> the decoder inputs that depend only on the sources. */
  async encode(sources) {
    const length = Math.max(...sources.map((ids) => ids.length));
    const rows = sources.flatMap((ids) => [...ids, ...Array(length - ids.length).fill(PAD)]);
    const source = this.ids(rows, [sources.length, length]);
    return { source, ...await this.encoder.run({ source }) };
  }

  /** The rows of the sentences at these places. */
  chosen(memory, places) {
    return Object.fromEntries(Object.entries(memory).map(([name, { type, data, dims }]) => {
      const size = data.length / dims[0];
      const rows = new data.constructor(places.length * size);
      places.forEach((place, n) => rows.set(data.subarray(place * size, (place + 1) * size), n * size));
      return [name, new this.ort.Tensor(type, rows, [places.length, ...dims.slice(1)])];
    }));
  }

  /** One position of all hypotheses; no cache at the first one. */
  async step(tokens, parents, memory, cache) {
    const shape = [tokens.length];
    const rows = { token: this.ids(tokens, shape), parent: this.ids(parents, shape) };
    const { log_probabilities: { data, dims }, ...longer } =
      await this.decoder.run({ ...rows, ...memory, ...(cache ?? this.empty()) });
    const named = Object.entries(longer).map(([name, value]) => [name.replace("new_", ""), value]);
    return { logProbs: data, V: dims[1], cache: Object.fromEntries(named) };
  }

  empty() {
    const { num_heads: heads, d_model, d_k, d_v } = this.config;
    if (this.config.decoder_self_attention === "ssru") {
      const state = new this.ort.Tensor("float32", new Float32Array(d_model), [1, d_model]);
      return { position: this.ids([0], [1]),
        ...Object.fromEntries(this.layers.map((layer) => [`state_${layer}`, state])) };
    }
    const none = (width) => new this.ort.Tensor("float32", new Float32Array(), [1, heads, 0, width]);
    return Object.fromEntries(this.layers.flatMap((layer) =>
      [[`keys_${layer}`, none(d_k)], [`values_${layer}`, none(d_v)]]));
  }

  ids(values, shape) {
    return new this.ort.Tensor("int32", Int32Array.from(values), shape);
  }
}
