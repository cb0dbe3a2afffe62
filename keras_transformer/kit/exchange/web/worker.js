// Runs the model in a worker, and answers the page's requests one after another.
// Messages in: {id, path, fields}, or {id} alone to abort a request. Messages out: {id, answer} or
// {id, error}, and {come, total}, bytes of the files being fetched.

import { fetchFiles } from "./files.js";
import { Model } from "./model.js";
import { TextTranslator } from "./text_translator.js";
import { Vocabulary } from "./vocabulary.js";

const given = fetchDescription();
const translator = given.then(load);
const abandoned = new Set();
let last = translator.catch(() => {}); // requests are answered in order

addEventListener("message", ({ data: { id, path, fields } }) => {
  if (path === undefined) abandoned.add(id);
  else if (path === "model") reply(id, given.then(({ card }) => card));
  else if (path === "healthz") reply(id, translator.then(() => ({ status: "ok" })));
  else last = last.then(() => reply(id, translate(id, fields)));
});

function reply(id, work) {
  return work.then((answer) => postMessage({ id, answer }),
    (error) => postMessage({ id, error: error.message }));
}

async function translate(id, fields) {
  const pause = async () => {
    await messages();
    if (abandoned.has(id)) throw new Error("given up");
  };
  await pause();
  return (await translator).answer(fields, pause);
}

/** Lets messages come in: the runtime computes in this thread. */
function messages() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(null);
  });
}

async function fetchDescription() {
  const response = await fetch("model.json", { cache: "no-cache" }).catch(() => ({ status: "none" }));
  if (!response.ok) {
    throw new Error(`model.json must be next to this page. Received: status ${response.status}`);
  }
  return response.json().catch(() => {
    throw new Error("model.json must be complete. Received: part of it, or another file");
  });
}

async function load({ card, version, files }) {
  const total = Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
  const cacheName = `${new URL("./", location.href).href} ${version}`; // as in service_worker.js
  const blobs = await fetchFiles(files, cacheName, (come) => postMessage({ come, total }));
  const bytesOf = (name) => blobs[name].arrayBuffer();
  const script = URL.createObjectURL(new Blob([blobs["runtime.mjs"]], { type: "text/javascript" }));
  const ort = await import(script);
  ort.env.wasm.numThreads = 1; // more need headers that static servers do not send
  ort.env.wasm.wasmBinary = await bytesOf("runtime.wasm");
  const session = async (name) => ort.InferenceSession.create(new Uint8Array(await bytesOf(name)));
  const encoder = await session("encoder.onnx");
  const model = new Model(ort, encoder, await session("decoder.onnx"), card.config);
  const vocabulary = async (name) => new Vocabulary(JSON.parse(await blobs[name].text()));
  const target = await vocabulary("vocabulary.json");
  const own = "source_vocabulary.json" in files; // the source has a separate one
  const source = own ? await vocabulary("source_vocabulary.json") : target;
  return new TextTranslator(model, source, target, card);
}
