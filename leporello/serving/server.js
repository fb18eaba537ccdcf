// Requests to the server. The token is in the fragment of the address, which browsers do not send, and then
// in the storage of this tab.
const fragment = new URLSearchParams(location.hash.slice(1)).get("token");
if (fragment) sessionStorage.setItem("token", fragment);
history.replaceState(null, "", "/"); // keep the token out of the address bar and bookmarks

export const request = (path, options) => fetch(path, { ...options, headers: { authorization: `Bearer ${sessionStorage.getItem("token")}` } });

async function checked(reply) {
  if (reply.ok) return reply;
  const isJson = reply.headers.get("content-type") === "application/json";
  throw new Error(isJson ? (await reply.json()).error : await reply.text());
}

export const get = async (path, options) => (await checked(await request(path, options))).json();
export const post = (path, value) => get(path, { method: "POST", body: JSON.stringify(value) });

// Yields the lines of a reply, parsed as JSON, while they arrive.
export async function* events(path, body) {
  const reply = await checked(await request(path, { method: "POST", body }));
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    yield* lines.map(line => JSON.parse(line));
  }
}

// Opens the page of the original PDF that contains a character of the text, in a new tab.
export async function openPdf(number, offset) {
  const tab = window.open("", "_blank"); // at once, since browsers allow it only right after a click
  if (!tab) throw new Error("the browser does not allow a new tab");
  tab.opener = null;
  try {
    const reply = await checked(await request(`/documents/${number}/pdf?at=${offset}`));
    const address = URL.createObjectURL(await reply.blob());
    tab.location = `${address}#page=${reply.headers.get("x-page")}`;
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (error) {
    tab.close();
    throw error;
  }
}
