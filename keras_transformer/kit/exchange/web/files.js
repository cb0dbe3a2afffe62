// Fetches the files of the model and the runtime once; each must be the one that the page was
// exported with.

/**
 * files: {name: {url, bytes, integrity}}; integrity as in the browser's own check
 * cacheName: the cache for offline use, if the browser allows it
 * progress: called with the number of bytes received
 *
 * Returns {name: Blob}.
 */
export async function fetchFiles(files, cacheName, progress) {
  const cache = await globalThis.caches?.open(cacheName).catch(() => undefined);
  const come = {}; // bytes received of each file
  const found = Object.entries(files).map(async ([name, file]) => {
    const blob = await fetchFile(name, file, cache, (bytes) => {
      come[name] = bytes;
      progress(Object.values(come).reduce((sum, each) => sum + each, 0));
    });
    return [name, blob];
  });
  return Object.fromEntries(await Promise.all(found));
}

async function fetchFile(name, { url, bytes, integrity }, cache, progress) {
  const kept = await cache?.match(url);
  const response = kept ?? await fetch(url, { cache: "no-cache" }).catch(() => {
    throw new Error(`${name} cannot be fetched from ${new URL(url, location.href).host}`);
  });
  if (!response.ok) throw new Error(`${name} must be at ${url}. Received: status ${response.status}`);
  const parts = [];
  let size = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) break;
    parts.push(value);
    progress(size += value.length);
  }
  const blob = new Blob(parts);
  if (!await isIntact(blob, integrity)) {
    await cache?.delete(url);
    throw new Error(`${name} must be the file of ${bytes} bytes that this page was exported with. ` +
      `Received: ${size === bytes ? "another" : `one of ${size} bytes`}`);
  }
  if (!kept) await cache?.put(url, new Response(blob)).catch(() => { /* there is no room */ });
  return blob;
}

/** Lets the browser check the content, even if the page has no crypto.subtle. */
async function isIntact(blob, integrity) {
  const url = URL.createObjectURL(blob);
  return fetch(url, { integrity }).then(() => true, () => false)
    .finally(() => URL.revokeObjectURL(url));
}
