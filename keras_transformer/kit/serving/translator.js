// What the page asks, answered by the server; an exported page has a model in the browser in its
// place, with the same functions (kit/exchange/web/translator.js).

/** Asks for `path` with these fields, or a FormData, if any; `signal` gives it up. */
export async function ask(path, fields, signal, method = "POST") {
  const body = fields instanceof FormData ? fields : JSON.stringify(fields);
  const post = fields && { method, body, signal };
  const response = await fetch(path, post).catch(() => {
    throw new Error("the server does not answer");
  });
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** What is waited for before any answer; "" for nothing. */
export const loading = () => "";
