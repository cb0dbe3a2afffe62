// What the page asks, answered by the model in this browser; a server has the same functions
// (serving/translator.js).

const waiting = new Map(); // {resolve, reject} of what was asked, by number
let count = 0;
let come = 0, total = 0; // bytes of files
let isLoaded = false;
let failure = typeof WebAssembly === "object" ? null
  : new Error("This browser cannot run the model: it has no WebAssembly.");
const worker = failure ? null : new Worker(new URL("worker.js", import.meta.url), { type: "module" });

worker?.addEventListener("message", ({ data }) => {
  if (data.id === undefined) return [come, total] = [data.come, data.total];
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.error === undefined) resolve(data.answer);
  else reject(new Error(data.error));
});
worker?.addEventListener("error", (event) => { // a file of it is missing, or memory
  failure = new Error(`The model cannot be run: ${event.message || "a file of this page is missing"}`);
  for (const { reject } of waiting.values()) reject(failure);
});

/** Asks for `path` with these fields, if any; `signal` gives it up. */
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

/** What is waited for before any answer; "" for nothing. */
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
