"use strict";
// Only the pieces of text around the visible part are loaded, for documents of any length. All texts of
// documents and models are inserted with textContent, so they are never parsed as HTML.
const PIECE = 8000, MOST = 6, NEAR = 600;
const $ = id => document.getElementById(id);
const view = $("text");
let open = null, largest = 0, pieces = [], marks = [], target = -1, moving = false;

function h(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return node;
}

// The token is in the fragment of the address, which is not sent, and then in this tab's storage.
const address = new URLSearchParams(location.hash.slice(1)).get("token");
if (address) sessionStorage.setItem("token", address);
const request = (path, options) => fetch(path, { ...options, headers: { authorization: `Bearer ${sessionStorage.getItem("token")}` } });

async function get(path, options) {
  const answer = await request(path, options);
  const value = answer.headers.get("content-type") === "application/json" ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(value.error);
  return value;
}

const say = text => { $("step").textContent = text; $("step").className = ""; };
const complain = error => { $("step").textContent = error.message || String(error); $("step").className = "bad"; };
const counted = number => number.toLocaleString("en");

// ---- the text

// Offsets count code points as in Python, although strings in JavaScript contain surrogate pairs.
function segments(data, letters) {
  const end = data.start + letters.length, cuts = new Set([data.start, end]);
  const starts = new Map(data.places.map(place => [place.start, []]));
  for (const place of data.places) starts.get(place.start).push(place.name);
  const inside = marks.filter(mark => mark.start < end && data.start < mark.end);
  for (const at of [target, ...starts.keys(), ...inside.flatMap(mark => [mark.start, mark.end])]) if (data.start < at && at < end) cuts.add(at);
  const bounds = [...cuts].sort((a, b) => a - b);
  return bounds.slice(0, -1).map((from, n) => {
    const kinds = new Set(inside.filter(mark => mark.start <= from && from < mark.end).map(mark => mark.kind));
    return { from, text: letters.slice(from - data.start, bounds[n + 1] - data.start).join(""), kinds: [...kinds], names: starts.get(from) || [] };
  });
}

function fill(piece) {
  const found = segments(piece.data, piece.letters);
  piece.node.replaceChildren(...found.flatMap(({ from, text, kinds, names }) => {
    const node = kinds.length ? h("mark", { class: kinds.join(" ") }, text) : h("span", {}, text);
    if (from === target) node.id = "target";
    return [...names.map(name => h("span", { class: "place" }, name)), node];
  }));
}

async function piece(number) {
  const data = await get(`/documents/${open.number}/text?start=${number * PIECE}&end=${(number + 1) * PIECE}`);
  const made = { number, data, letters: Array.from(data.text), node: h("span", {}) };
  fill(made);
  return made;
}

const last = () => Math.max(0, Math.ceil(open.length / PIECE) - 1);

async function go(offset, focus) {
  const about = open, number = Math.min(last(), Math.floor(offset / PIECE));
  target = offset;
  const wanted = [number - 1, number, number + 1].filter(n => 0 <= n && n <= last());
  const found = await Promise.all(wanted.map(piece));
  if (about !== open || target !== offset) return; // something else was opened in the meantime
  pieces = found;
  view.replaceChildren(...pieces.map(one => one.node));
  const node = $("target") || pieces[wanted.indexOf(number)].node;
  const apart = node.getBoundingClientRect().top - view.getBoundingClientRect().top;
  view.scrollTop += apart - view.clientHeight / 3;
  if (focus) view.focus();
  showPosition();
}

async function grow() {
  if (moving || !pieces.length) return;
  const above = view.scrollTop < NEAR && pieces[0].number > 0;
  const below = view.scrollTop + view.clientHeight > view.scrollHeight - NEAR && pieces.at(-1).number < last();
  if (!above && !below) return;
  moving = true;
  const before = pieces;
  try {
    const made = await piece(above ? pieces[0].number - 1 : pieces.at(-1).number + 1);
    if (before !== pieces) return;
    const height = view.scrollHeight, top = view.scrollTop;
    if (above) {
      view.prepend(made.node);
      pieces.unshift(made);
      view.scrollTop = top + view.scrollHeight - height;
      if (pieces.length > MOST) pieces.pop().node.remove();
    } else {
      view.append(made.node);
      pieces.push(made);
      if (pieces.length > MOST) {
        const full = view.scrollHeight;
        pieces.shift().node.remove();
        view.scrollTop = top + view.scrollHeight - full;
      }
    }
  } finally { moving = false; }
}

// Shows the position of the visible part: the piece in the middle, and the offset in it.
function showPosition() {
  const middle = view.getBoundingClientRect().top + view.clientHeight / 2;
  const seen = pieces.findLast(one => one.node.getClientRects().length && one.node.getBoundingClientRect().top <= middle) || pieces[0];
  if (!seen) return;
  const box = seen.node.getBoundingClientRect();
  const at = seen.data.start + Math.round(seen.letters.length * Math.min(1, Math.max(0, (middle - box.top) / (box.height || 1))));
  const place = seen.data.places.findLast(one => one.start <= at);
  const name = place ? place.name : seen.data.place;
  const text = `${name ? `${name} · ` : ""}character ${counted(at)} of ${counted(open.length)}`;
  $("position").value = at;
  $("position").setAttribute("aria-valuetext", text);
  $("here").textContent = text;
}

function mark(turn) {
  const of = (kind, spans) => spans.map(({ start, end }) => ({ kind, start, end }));
  marks = [...of("passage", turn.passages.map(one => one.span)), ...of("answer", turn.spans)];
  pieces.forEach(fill);
}

// ---- questions and answers

function goTo(turn, { start, place }) {
  const button = h("button", { type: "button", class: "goto" }, place);
  button.addEventListener("click", () => { mark(turn); go(start, true).catch(complain); });
  return button;
}

function fold(title, ...children) {
  return h("details", {}, h("summary", {}, title), ...children);
}

function shown(turn) {
  const where = turn.spans[0] || (turn.passages[0] && { start: turn.passages[0].span.start, place: turn.passages[0].place });
  const passage = one => h("li", {}, goTo(turn, { start: one.span.start, place: one.place }), h("span", { class: "note" }, `score ${one.score.toPrecision(4)}${one.read ? "" : ", not read"}`), h("blockquote", {}, one.text));
  return h("article", { class: "turn" },
    h("h2", {}, turn.asked),
    turn.question !== turn.asked ? h("p", { class: "note" }, `rewritten as: ${turn.question}`) : null,
    h("p", { class: "told" }, turn.told, turn.certainty ? h("span", { class: "note" }, ` ${turn.certainty} (${Math.round(100 * turn.confidence)} %)`) : null),
    where ? goTo(turn, where) : null,
    turn.items.length ? fold(`Items (${turn.items.length})`, h("ol", {}, turn.items.map(item => h("li", {}, item.text, item.passages.map(one => goTo(turn, one)))))) : null,
    turn.notes.map(note => h("p", { class: "note" }, note)),
    fold(`Passages (${turn.passages.length})`, h("ol", {}, turn.passages.map(passage))),
    fold("Ledger", turn.ledger.map(line => h("p", { class: "note" }, line))));
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const found = (kept + value).split("\n");
    kept = found.pop();
    yield* found.map(line => JSON.parse(line));
  }
}

async function ask() {
  const about = open, answer = await request(`/documents/${about.number}/ask`, { method: "POST", body: $("question").value });
  if (!answer.ok) throw new Error(await answer.text());
  let turn = null;
  for await (const event of lines(answer.body)) {
    if (event.error) throw new Error(event.error);
    if (event.step) say(event.step);
    turn = event.answer || turn;
  }
  if (!turn) throw new Error("the server has stopped");
  say("");
  if (about !== open) return; // the answer is shown when the document is opened again
  $("turns").prepend(shown(turn));
  $("question").select();
  mark(turn);
  const where = turn.spans[0] || (turn.passages[0] && turn.passages[0].span);
  if (where) await go(where.start);
}

// ---- documents

async function show(one) {
  open = one;
  marks = [];
  $("title").textContent = document.title = one.name;
  $("position").max = Math.max(0, one.length - 1);
  $("alone").textContent = one.follows_up ? "Follow-up questions may refer to earlier questions." : "This reader does not support follow-up questions.";
  const turns = await get(`/documents/${one.number}`);
  if (open !== one) return;
  $("turns").replaceChildren(...turns.reverse().map(shown), ...one.notes.map(note => h("p", { class: "note" }, note)));
  await go(0);
}

async function list(chosen) {
  const found = await get("/documents");
  largest = found.largest;
  $("document").replaceChildren(...found.documents.map(one => h("option", { value: one.number }, one.name)));
  $("document").value = chosen;
  $("document").onchange = event => show(found.documents[event.target.value]).catch(complain);
  await show(found.documents[chosen]);
}

async function add(file) {
  if (!file) return;
  if (file.size > largest) throw new Error(`${file.name}: exceeds the limit of ${counted(largest)} bytes`);
  say(`reading ${file.name}`);
  const { number } = await get(`/documents?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  await list(number);
  say("");
  $("question").focus();
}

async function find(jump) {
  const asked = JSON.stringify({ document: open.number, like: $("goto").value, most: 50 });
  const { entries: found } = await get("/outline", { method: "POST", body: asked });
  $("places").replaceChildren(...found.map(place => h("option", { value: place.name })));
  const same = found.find(place => place.name === $("goto").value) || (jump && found[0]);
  if (same) await go(same.start);
  else if (jump) say("this place was not found");
}

function onKey(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { $("question").focus(); event.preventDefault(); }
  if (event.key === "Escape") view.focus();
  const ends = { Home: 0, End: open ? open.length : 0 };
  if (event.target === view && event.key in ends) { go(ends[event.key]).catch(complain); event.preventDefault(); }
}

function begin() {
  history.replaceState(null, "", "/"); // keep the token out of the address bar and bookmarks
  let waiting = 0;
  view.addEventListener("scroll", () => { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; showPosition(); grow().catch(complain); }); });
  document.addEventListener("keydown", onKey);
  $("form").addEventListener("submit", event => {
    event.preventDefault();
    $("ask").disabled = true;
    ask().catch(complain).finally(() => { $("ask").disabled = false; });
  });
  $("file").addEventListener("change", event => { const [file] = event.target.files; add(file).catch(complain).finally(() => { event.target.value = ""; }); });
  $("goto").addEventListener("input", () => find(false).catch(complain));
  $("goto").addEventListener("keydown", event => { if (event.key === "Enter") find(true).catch(complain); });
  $("position").addEventListener("change", event => go(Number(event.target.value)).catch(complain));
  $("theme").addEventListener("change", event => { document.documentElement.dataset.theme = event.target.value; });
  list(0).catch(complain);
}

begin();
