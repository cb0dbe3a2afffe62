// Keeps the page for use without a network. VERSION, which changes with any file, and SHELL, the
// files that are not the model's, are written above this line by the export. The model's files come
// into the same cache when they are fetched (files.js).

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
