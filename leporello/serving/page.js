// The parts of the page around the text: documents, outline, questions, answers and keys.
import { events, get, openPdf, post } from "/server.js";
import { again, go, h, listen, mark, pdfButton, segments, show as showText, showPosition, source } from "/text.js";

const CLOSEST = 3, SMALL = 60; // passages that are always shown; places up to which the outline is unfolded
const $ = id => document.getElementById(id);
let open = null, largest = 0, links = [], places = [], root = "", current = null, opening = null; // links of the drawn outline; places and only root of the complete one

const say = text => { $("step").textContent = text; $("step").className = text ? "busy" : ""; };
const complain = error => { $("step").textContent = error.message || String(error); $("step").className = "bad"; };
const counted = number => number.toLocaleString("en");
const isNarrow = () => matchMedia("(max-width: 800px)").matches;

function button(name, onClick, ...children) {
  const node = h("button", { type: "button", class: name }, children);
  node.addEventListener("click", () => Promise.resolve(onClick()).catch(complain));
  return node;
}

// On narrow screens only one part of the page is visible.
function view(name) {
  document.body.dataset.view = name;
  for (const tab of document.querySelectorAll("[data-tab]")) tab.setAttribute("aria-pressed", tab.dataset.tab === name);
}

async function goTo(offset) {
  view("text");
  await go(offset, true);
}

// ---- the outline

function link(place, file) {
  const name = place.level && place.name.startsWith(`${file} `) ? place.name.slice(file.length + 1) : place.name;
  const node = button("entry", () => goTo(place.start), name.replace(/\*\*|`/g, "") || "(no title)");
  links.push({ start: place.start, node });
  return node;
}

function fold(item, name, isOpen) {
  const list = h("ul", {}), toggle = h("button", { type: "button", class: "fold", "aria-label": `Places in ${name}`, "aria-expanded": isOpen });
  list.hidden = !isOpen;
  toggle.addEventListener("click", () => { list.hidden = !list.hidden; toggle.setAttribute("aria-expanded", !list.hidden); });
  item.prepend(toggle);
  item.append(list);
  return list;
}

function drawOutline({ entries, more_entries: more }, isComplete) {
  const tree = h("ul", {}), path = [{ level: -1, list: tree }], top = Math.min(...entries.map(one => one.level));
  const roots = entries.filter(one => one.level === top), isRoot = one => roots.length === 1 && one.level === top;
  let file = "";
  links = [];
  for (const place of entries) {
    if (place.level === 0) file = place.name;
    while (path.at(-1).level >= place.level) path.pop();
    const parent = path.at(-1), item = h("li", {}, link(place, file));
    parent.list ??= fold(parent.item, parent.name, entries.length <= SMALL || isRoot(parent));
    parent.list.append(item);
    path.push({ level: place.level, name: place.name, item, list: null });
  }
  $("places").replaceChildren(tree);
  $("more").hidden = !more && entries.length > 0;
  $("more").textContent = more ? `${counted(more)} more places: search for them` : "No places";
  if (isComplete) [places, root] = [links.map(({ start, node }) => ({ start, name: node.textContent })), roots.length === 1 ? roots[0].name : ""];
  showPosition();
}

function moved(offset, place) {
  const { start, name = "" } = places.findLast(one => one.start <= offset) || {}, percent = Math.round(100 * offset / Math.max(1, open.length));
  const names = [place, place.startsWith(name) ? "" : name].filter(Boolean), here = links.find(one => one.start === start);
  $("here").textContent = [...names, `${percent} %`].join(" · ");
  $("here").title = `character ${counted(offset)} of ${counted(open.length)}`;
  $("position").value = offset;
  $("position").setAttribute("aria-valuetext", $("here").textContent);
  for (const one of document.querySelectorAll(".entry[aria-current]")) if (one !== here?.node) one.removeAttribute("aria-current");
  if (!here || here.node.hasAttribute("aria-current")) return;
  here.node.setAttribute("aria-current", "location");
  for (let list = here.node.closest("ul[hidden]"); list; list = list.parentElement.closest("ul[hidden]")) list.parentElement.querySelector(".fold").click();
  const box = $("places").getBoundingClientRect(), row = here.node.getBoundingClientRect();
  if (row.top < box.top || row.bottom > box.bottom) $("places").scrollTop += row.top - box.top - box.height / 3;
}

async function find(jump) {
  const like = $("goto").value, found = await post("/outline", { document: open.number, like, most: like ? 100 : 2000 });
  if (like !== $("goto").value) return; // more was typed in the meantime
  drawOutline(found, !like);
  const chosen = found.entries.find(place => place.name === like) || found.entries[0];
  if (jump && chosen) await go(chosen.start);
}

// ---- questions and answers

// Highlights the passages and answers of a turn in the text, and shows one of them.
async function choose(turn, offset, node) {
  const of = (kind, spans) => spans.map(({ start, end }) => ({ kind, start, end }));
  for (const one of document.querySelectorAll(".card[aria-current]")) one.removeAttribute("aria-current");
  node?.setAttribute("aria-current", "true");
  current = node?.closest(".turn") || current;
  mark([...of("passage", turn.passages.map(one => one.span)), ...of("answer", turn.spans)]);
  await go(offset);
}

// A place without the name of the only document and its only outermost heading.
const short = name => [`${open.name} `, `${root} > `].reduce((rest, part) => (rest.startsWith(part) ? rest.slice(part.length) : rest), name);

function place(turn, { start, place: name }) {
  return button("link", () => { view("text"); return choose(turn, start, null); }, short(name));
}

// A card with an excerpt, whose place leads to the text.
function card(turn, excerpt, { start, end, place: name }, ...notes) {
  const { text, start: from, ranges } = excerpt, marked = from === null ? [] : turn.spans.map(span => ({ ...span, kind: "answer" }));
  const letters = source({ start: from ?? 0, text }), to = letters.start + letters.letters.length;
  const node = h("div", { class: "card" });
  const show = () => { view("text"); return choose(turn, start, node); };
  node.append(
    h("p", { class: "head" }, button("link", show, short(name)), ...notes, pdfButton(start)),
    h("blockquote", {}, from > start ? "… " : null, segments(letters, letters.start, to, ranges, marked), from !== null && to < end ? " …" : null));
  node.step = () => choose(turn, start, node);
  return node;
}

function details(title, ...children) {
  return h("details", {}, h("summary", {}, title), ...children);
}

function confidence(turn) {
  if (!turn.found || !turn.certainty) return null;
  return h("p", { class: `confidence ${turn.certainty}` }, `${turn.certainty} · ${Math.floor(100 * turn.confidence)} %`);
}

const WARNINGS = {
  absent: "These passages are the closest.",
  unsure: "The answer may be wrong: compare it with the closest passages.",
};

function passages(turn) {
  const isRead = one => h("span", { class: "note" }, `score ${one.score.toPrecision(3)}${one.read ? "" : " · not read"}${one.kind === "verbatim" ? "" : ` · ${one.kind}`}`);
  const cards = turn.passages.map(one => card(turn, one, { ...one.span, place: one.place }, isRead(one)));
  const rest = cards.slice(CLOSEST);
  return [cards.length ? h("h3", {}, "Passages") : null, cards.slice(0, CLOSEST), rest.length ? details(`${rest.length} more passages`, rest) : null];
}

function shown(turn) {
  const state = turn.found ? turn.certainty || "plain" : "absent", [first, ...others] = turn.spans;
  return h("details", { class: `turn ${state}`, open: "" },
    h("summary", {}, h("h2", {}, turn.asked)),
    turn.question !== turn.asked ? h("p", { class: "note" }, `rewritten as: ${turn.question}`) : null,
    h("p", { class: "told" }, turn.told),
    confidence(turn),
    WARNINGS[state] && turn.passages.length ? h("p", { class: "warning" }, WARNINGS[state]) : null,
    first && turn.found ? card(turn, turn.source, first) : null,
    others.length && turn.found ? h("p", { class: "note" }, "Also at ", others.slice(0, CLOSEST).map(one => place(turn, one))) : null,
    turn.items.length ? details(`Items (${turn.items.length})`, h("ol", {}, turn.items.map(item => h("li", {}, item.text, " ", item.passages.map(one => place(turn, one)))))) : null,
    turn.notes.map(note => h("p", { class: "note" }, note)),
    passages(turn),
    details("Coverage", turn.coverage_lines.map(line => h("p", { class: "note" }, line))));
}

function addTurn(turn) {
  for (const one of $("turns").children) one.open = false;
  const node = shown(turn);
  $("turns").prepend(node);
  $("welcome").hidden = true;
  current = node;
  return node;
}

async function ask() {
  if (!open) await opening; // the first document is still being loaded
  const about = open;
  let turn = null;
  for await (const event of events(`/documents/${about.number}/ask`, $("question").value)) {
    if (event.error) throw new Error(event.error);
    if (event.step) say(event.step);
    turn = event.answer || turn;
  }
  if (!turn) throw new Error("the server has stopped");
  say("");
  await opening.catch(() => {}); // earlier answers are drawn first, and replace all others
  if (about !== open) return; // the answer is shown when the document is opened again
  const node = addTurn(turn);
  $("question").select();
  // Not awaited: while a question is being answered, Enter asks no other one.
  node.querySelector(".card")?.step().catch(complain);
}

// Goes to the next or previous passage of the last answer.
async function step(by, focus) {
  const cards = [...current?.querySelectorAll(".card") || []].filter(one => one.checkVisibility());
  const at = cards.findIndex(one => one.hasAttribute("aria-current"));
  const next = cards[at < 0 ? 0 : Math.max(0, Math.min(cards.length - 1, at + by))];
  if (!next) return;
  next.scrollIntoView({ block: "nearest" });
  if (focus) next.querySelector("button").focus();
  await next.step();
}

// ---- documents

function show(one) {
  opening = draw(one);
  return opening;
}

async function draw(one) {
  open = one;
  $("title").textContent = document.title = one.name;
  $("position").max = Math.max(0, one.length - 1);
  $("alone").textContent = one.follows_up ? "Follow-up questions may refer to earlier questions." : "This reader does not support follow-up questions.";
  $("goto").value = "";
  [links, places, root, current] = [[], [], "", null];
  const [turns] = await Promise.all([get(`/documents/${one.number}`), showText(one)]);
  if (open === one) await find(false); // cards leave out headings that all places share
  if (open !== one) return;
  $("turns").replaceChildren();
  $("welcome").hidden = false;
  turns.forEach(addTurn);
  $("notes").replaceChildren(...one.notes.map(note => h("p", { class: "note" }, note)));
}

async function list(chosen) {
  const found = await get("/documents");
  largest = found.largest;
  $("document").replaceChildren(...found.documents.map(one => h("option", { value: one.number }, one.name)));
  $("document").value = chosen;
  $("document").hidden = found.documents.length < 2;
  $("document").onchange = event => show(found.documents[event.target.value]).catch(complain);
  await show(found.documents[chosen]);
}

async function add(files) {
  for (const file of files) {
    if (file.size > largest) throw new Error(`${file.name}: exceeds the limit of ${counted(largest)} bytes`);
    say(`reading ${file.name}`);
    const { number } = await get(`/documents?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    await list(number);
    say("");
    $("question").focus();
  }
}

function takeDrops() {
  const hasFiles = event => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", event => { if (hasFiles(event)) { event.preventDefault(); $("drop").hidden = false; } });
  document.addEventListener("dragleave", event => { if (!event.relatedTarget) $("drop").hidden = true; });
  document.addEventListener("drop", event => {
    $("drop").hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]).catch(complain);
  });
}

// ---- keys

function toggleOutline(isOpen = $("outline").classList.contains("closed")) {
  $("outline").classList.toggle("closed", !isOpen);
  $("toggle").setAttribute("aria-expanded", isOpen);
}

const KEYS = {
  "/": () => { view("answers"); $("question").focus(); $("question").select(); },
  "?": () => $("help").showModal(),
  g: () => { toggleOutline(true); view("outline"); $("goto").focus(); },
  o: () => { toggleOutline(); view("outline"); },
  j: () => step(1),
  k: () => step(-1),
};

function onKey(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && target.type !== "range";
  const ends = { Home: 0, End: open ? open.length : 0 }, arrows = { ArrowDown: 1, ArrowUp: -1 };
  let action = isTyping ? null : KEYS[key];
  if (key === "Escape") action = () => { view("text"); $("text").focus(); };
  if (target === $("text") && key in ends) action = () => go(ends[key], true);
  if (target.closest(".card") && key in arrows) action = () => step(arrows[key], true);
  if (!action) return;
  event.preventDefault();
  Promise.resolve(action()).catch(complain);
}

function begin() {
  listen({ moved, pdf: offset => openPdf(open.number, offset).catch(complain), failed: complain });
  document.addEventListener("keydown", onKey);
  takeDrops();
  $("form").addEventListener("submit", event => {
    event.preventDefault();
    $("ask").disabled = true;
    ask().catch(complain).finally(() => { $("ask").disabled = false; });
  });
  $("file").addEventListener("change", event => add([...event.target.files]).catch(complain).finally(() => { event.target.value = ""; }));
  $("goto").addEventListener("input", () => find(false).catch(complain));
  $("goto").addEventListener("keydown", event => { if (event.key === "Enter") { view("text"); $("text").focus(); find(true).catch(complain); } });
  $("position").addEventListener("change", event => go(Number(event.target.value)).catch(complain));
  $("theme").addEventListener("change", event => { document.documentElement.dataset.theme = event.target.value; });
  $("toggle").addEventListener("click", () => toggleOutline());
  $("keys").addEventListener("click", KEYS["?"]);
  for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => { view(tab.dataset.tab); again().catch(complain); });
  toggleOutline(innerWidth >= 1100);
  opening = list(0);
  opening.catch(complain);
}

begin();
