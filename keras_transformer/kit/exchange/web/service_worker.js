// Caches the page for offline use. The export writes VERSION, which changes with any file, and
// SHELL, the files other than the model's, above this line. The model's files enter the same cache
// when they are fetched (files.js).

const FOLDER = new URL("./", location).href; // an origin may have several such pages
const CACHE = `${FOLDER} ${VERSION}`;

addEventListener("install", (event) => {
  const requests = SHELL.map((url) => new Request(url, { cache: "no-cache" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(requests)));
});

addEventListener("activate", (event) => {
  const isEarlier = (name) => name !== CACHE && name.startsWith(`${FOLDER} `);
  event.waitUntil(caches.keys().then((names) =>
    Promise.all(names.filter(isEarlier).map((name) => caches.delete(name)))));
});

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith(caches.open(CACHE).then(async (cache) =>
    await cache.match(event.request, { ignoreSearch: true }) ?? fetch(event.request)));
});
