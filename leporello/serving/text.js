// The text of the open document. Only the pieces around the visible part are loaded, for documents of any
// length. All texts of documents and models are inserted as text, so they are never parsed as HTML.
import { get } from "/server.js";

const PIECE = 8000, MOST = 6, NEAR = 600;
const view = document.getElementById("text");
let open = null, pieces = [], marks = [], target = 0, moving = false, hooks = {};

export function h(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) if (value !== null) node.setAttribute(key, value);
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return node;
}

// Offsets count code points as in Python, although strings in JavaScript contain surrogate pairs.
export const source = data => ({ start: data.start, letters: Array.from(data.text) });
const spans = ranges => ranges.map(([start, end, kind]) => ({ start, end, kind }));

// Returns one node per segment of a range, with the offset of its first character in the document.
export function segments({ start: base, letters }, start, end, ranges, marked, places = []) {
  const inside = [...spans(ranges), ...marked].filter(one => one.start < end && start < one.end);
  const ends = [...inside, ...places].flatMap(one => [one.start, one.end ?? one.start]);
  const cuts = [...new Set([start, ...ends.filter(at => start < at && at < end), end])].sort((a, b) => a - b);
  return cuts.slice(0, -1).flatMap((from, n) => {
    const kinds = new Set(inside.filter(one => one.start <= from && from < one.end).map(one => one.kind));
    const isMarked = kinds.has("answer") || kinds.has("passage");
    const text = letters.slice(from - base, cuts[n + 1] - base).join("");
    let node = h(isMarked ? "mark" : "span", { "data-start": from, class: [...kinds].join(" ") || null }, text);
    for (const name of ["code", "em", "strong"]) if (kinds.has(name)) node = h(name, {}, node);
    return [...places.filter(place => place.start === from).map(place => label("span", place)), node];
  });
}

const isPdf = offset => open.pdfs.some(([start, end]) => start <= offset && offset < end);

export function pdfButton(offset) {
  if (!isPdf(offset)) return null;
  const button = h("button", { type: "button", class: "link pdf" }, "Open in PDF");
  button.addEventListener("click", () => hooks.pdf(offset));
  return button;
}

function label(name, place, isLast = true) {
  const line = /^line (\d+)$/.exec(place.name);
  return h(name, { class: line ? "line" : "place" }, line ? line[1] : place.name, isLast && !line ? pdfButton(place.start) : null);
}

// ---- blocks

const ELEMENTS = { paragraph: "p", lines: "p", code: "pre", quote: "blockquote", rule: "div" };

function row(letters, block, cells, places, isHeader) {
  const filled = [];
  for (const [start, end, column] of cells) {
    while (filled.length < column) filled.push(h("td", {}));
    const name = places.find(place => place.start === start)?.name;
    filled.push(h(isHeader ? "th" : "td", { title: name ?? null }, segments(letters, start, end, block.ranges, marks)));
  }
  return h("tr", {}, filled);
}

function table(letters, block, places, before) {
  const rows = block.rows.map((cells, n) => row(letters, block, cells, places, n === 0 && block.level > 0));
  if (before) {
    before.querySelector("tbody").append(...rows);
    return [];
  }
  const parts = [h("thead", {}, rows.slice(0, block.level)), h("tbody", {}, rows.slice(block.level))];
  return h("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, h("table", {}, parts));
}

function item(letters, block, places, before) {
  const number = /^\s*(\d+)/.exec(letters.letters.slice(block.start - letters.start, block.start - letters.start + 12).join(""));
  const name = number ? "ol" : "ul";
  const node = h("li", { class: `level-${block.level}`, value: number ? number[1] : null }, segments(letters, block.start, block.end, block.ranges, marks, places));
  if (before?.localName === name) {
    before.append(node);
    return [];
  }
  return h(name, {}, node);
}

function drawn(letters, block, places, before) {
  if (block.kind === "table") return table(letters, block, places, before?.className === "table" && !block.level ? before : null);
  if (block.kind === "item") return item(letters, block, places, before);
  const name = block.kind === "heading" ? `h${Math.min(6, block.level + 1)}` : ELEMENTS[block.kind];
  return h(name, { class: `${block.kind} level-${block.level}` }, segments(letters, block.start, block.end, block.ranges, marks, places));
}

function fill(piece) {
  const { data, letters } = piece, nodes = [];
  let at = data.start;
  piece.blocks = [];
  for (const block of data.blocks) {
    const inside = data.places.filter(place => at <= place.start && place.start < block.end);
    const first = inside.filter(place => place.start <= block.start && !place.name.startsWith("line "));
    const ofCells = block.kind === "table" && inside.length > 1; // they are titles of cells
    const above = ofCells ? [] : first.map(place => label("div", place, place === first.at(-1)));
    const node = drawn(letters, block, ofCells ? inside : inside.filter(place => !first.includes(place)), above.length ? null : nodes.at(-1));
    nodes.push(...[above, node].flat());
    at = block.end;
    piece.blocks.push(nodes.at(-1));
  }
  piece.node.replaceChildren(...nodes);
}

// ---- pieces

async function load(start, end) {
  const data = await get(`/documents/${open.number}/text?start=${Math.max(0, start)}&end=${end}`);
  const piece = { data, letters: source(data), node: h("div", { class: "piece" }) };
  fill(piece);
  return piece;
}

function scrollTo(offset) {
  const nodes = [...view.querySelectorAll("[data-start]")];
  const first = Math.max(0, nodes.findLastIndex(one => Number(one.dataset.start) <= offset));
  const node = nodes.slice(first).find(one => one.getClientRects().length); // marks are hidden
  if (!node) return;
  view.scrollTop += node.getBoundingClientRect().top - view.getBoundingClientRect().top - view.clientHeight / 3;
}

// Shows the text around a character; the pieces that are shown before are unloaded.
export async function go(offset, focus) {
  const about = open;
  target = offset;
  if (focus) view.focus(); // at once: later it would interrupt typing
  const piece = await load(offset - PIECE, offset + PIECE);
  if (about !== open || target !== offset) return; // something else was opened in the meantime
  pieces = [piece];
  view.replaceChildren(piece.node);
  scrollTo(offset);
  showPosition();
  await grow();
}

async function grow() {
  if (moving || !pieces.length || !view.clientHeight) return;
  const [first, last] = [pieces[0], pieces.at(-1)];
  const above = view.scrollTop < NEAR && first.data.start > 0;
  const below = view.scrollTop + view.clientHeight > view.scrollHeight - NEAR && last.data.end < open.length;
  if (!above && !below) return;
  moving = true;
  const before = pieces;
  try {
    const { start } = first.data, { end } = last.data;
    const piece = await (above ? load(start - PIECE, start) : load(end, end + PIECE));
    if (before !== pieces) return;
    if (above) addAbove(piece);
    else addBelow(piece);
  } finally { moving = false; }
  await grow();
}

function addAbove(piece) {
  const height = view.scrollHeight, top = view.scrollTop;
  view.prepend(piece.node);
  pieces.unshift(piece);
  view.scrollTop = top + view.scrollHeight - height;
  if (pieces.length > MOST) pieces.pop().node.remove();
}

function addBelow(piece) {
  view.append(piece.node);
  pieces.push(piece);
  if (pieces.length <= MOST) return;
  const height = view.scrollHeight, top = view.scrollTop;
  pieces.shift().node.remove();
  view.scrollTop = top + view.scrollHeight - height;
}

// Reports the character at a third of the visible height, where `go` puts its target.
export function showPosition() {
  if (!view.clientHeight) return; // another part of the page is visible
  const line = view.getBoundingClientRect().top + view.clientHeight / 3 + 4;
  const isEnd = view.scrollTop > 0 && view.scrollTop + view.clientHeight >= view.scrollHeight - 2;
  const isAbove = node => isEnd || node.getBoundingClientRect().top <= line;
  const seen = pieces.flatMap(piece => piece.blocks).findLast(isAbove);
  const nodes = [...seen?.querySelectorAll("[data-start]") || []].filter(node => node.getClientRects().length);
  const at = Number((nodes.findLast(isAbove) || nodes[0])?.dataset.start ?? 0);
  const place = pieces.flatMap(piece => piece.data.places).findLast(one => one.start <= at);
  hooks.moved?.(at, place?.name || "");
}

export function mark(list) {
  marks = list;
  pieces.forEach(fill);
}

export async function show(one) {
  open = one;
  marks = [];
  await go(0);
}

// Scrolls to the last target again, after the text was hidden.
export const again = () => { scrollTo(target); showPosition(); return grow(); };

// Calls `moved(offset, place)` after a scroll, `pdf(offset)` to open a page, and `failed(error)`.
export function listen(functions) {
  let waiting = 0;
  hooks = functions;
  view.addEventListener("scroll", () => {
    if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; showPosition(); grow().catch(hooks.failed); });
  });
}
