// SPDX-License-Identifier: BSD-3-Clause
// api: requests to the gateway that served the page. The token stays in the session's storage and in a header, never in a URL.
// same-origin: a browser then shows the certificate that it has for the gateway, which needs no token.

const KEY = "weir-token";

export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let askForToken = null;
/** ask: returns a promise of a token, or null. */
export const onTokenNeeded = (ask) => { askForToken = ask; };
export const forgetToken = () => sessionStorage.removeItem(KEY);

async function request(method, path, body, signal) {
  const token = sessionStorage.getItem(KEY);

  return fetch(path, {
    method, body, signal, cache: "no-store", credentials: "same-origin", redirect: "error",
    headers: token ? { Authorization: `Bearer ${token}` } : {},
  });
}

/** Send a request. Returns the reply's JSON (or text), or throws an ApiError with the gateway's own words. */
export async function call(method, path, body, signal) {
  let reply = await request(method, path, body, signal);

  if (reply.status === 401 && askForToken) {
    const token = await askForToken(sessionStorage.getItem(KEY) !== null);

    if (token !== null) {
      sessionStorage.setItem(KEY, token);
      reply = await request(method, path, body, signal);
    }
  }
  const text = await reply.text();
  let value = text;

  if (reply.headers.get("Content-Type")?.startsWith("application/json") && text) value = JSON.parse(text);
  if (!reply.ok) throw new ApiError(reply.status, value?.error ?? (text.trim() || reply.statusText));
  if (value && typeof value === "object") value.bytes_ = text.length;
  return value;
}

export const get = (path, signal) => call("GET", path, undefined, signal);
/** A path of which each part but the separators of a tenant's path is encoded. */
export const keyPath = (key) => key.split("/").map(encodeURIComponent).join("/");
