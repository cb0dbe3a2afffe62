// Answers the page's requests with the model in this browser; kit/serving/translator.js has the same
// functions for a server.

const waiting = new Map(); // {resolve, reject} of pending requests, by number
let count = 0;
let come = 0, total = 0; // bytes of files
let isLoaded = false;
let failure = typeof WebAssembly === "object" ? null
  : new Error("This browser cannot run the model: it does not support WebAssembly.");
const worker = failure ? null : new Worker(new URL("worker.js", import.meta.url), { type: "module" });

worker?.addEventListener("message", ({ data }) => {
  if (data.id === undefined) return [come, total] = [data.come, data.total];
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.error === undefined) resolve(data.answer);
  else reject(new Error(data.error));
});
worker?.addEventListener("error", (event) => { // a missing file, or too little memory
  failure = new Error(`The model cannot run: ${event.message || "a file of this page is missing"}`);
  for (const { reject } of waiting.values()) reject(failure);
});

/** Requests `path` with these fields, if any; `signal` aborts the request. */
export function ask(path, fields, signal) {
  if (failure) return Promise.reject(failure);
  return new Promise((resolve, reject) => {
    const id = count += 1;
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, path, fields });
    signal?.addEventListener("abort", () => {
      worker.postMessage({ id });
      reject(signal.reason);
    });
  });
}

/** The status while the model is loading; "" otherwise. */
export function loading() {
  if (isLoaded) return "";
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  const progress = total ? ` (${megabytes(come)} of ${megabytes(total)} MB)` : "";
  return `Loading the model${progress}\u2026`;
}

// After the first visit, the page works without a network.
ask("healthz").then(() => {
  isLoaded = true;
  return navigator.serviceWorker?.register("service_worker.js");
}).catch(() => { /* the page says it, or works with a network alone */ });
