"use strict";
// The list shows the index of a task. The detail of an example is unpacked when the example is opened.
// All texts of runs and documents are inserted with textContent, so they are never parsed as HTML.
const PAGE = 50, ABSENT = 0, FAILED = 2;
const $ = id => document.getElementById(id);
const list = $("list"), detail = $("detail");
const unpacked = new Map();
let task = 0, index = null, found = [], opened = -1, haystack = [];

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return element;
}

const h = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);
const drawn = (name, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function unpack(id) {
  if (!unpacked.has(id)) {
    if (unpacked.size > 30) unpacked.delete(unpacked.keys().next().value);
    const bytes = Uint8Array.from(atob($(id).textContent), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(id, new Response(stream).json());
  }
  return unpacked.get(id);
}

// Names and ids differ at their ends.
const middle = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1 - (most >> 1))}…${text.slice(-(most >> 1))}`);

// ---- the list

function options(select, values) {
  select.replaceChildren(...values.map(([value, text]) => h("option", { value, title: text }, middle(text, 40))));
}

async function openTask(number) {
  task = number;
  opened = -1;
  index = await unpack(`index-${task}`);
  haystack = index.ids.map((id, n) => [id, index.questions[n], ...index.predictions.map(p => p[n])].join("\n").toLowerCase());
  const jobs = index.jobs.map((job, n) => [n, job.name === job.label ? job.label : `${job.name} ${job.label}`]);
  options($("job"), jobs);
  options($("other"), [["", "–"], ...jobs]);
  options($("metric"), index.metrics.map((name, n) => [n, name]));
  const stages = index.stages.map((name, n) => [n, n ? `lost at ${name}` : "failed, evidence known"]);
  options($("state"), [["", "all"], ["failed", "failed"], ["absent", "not finished"], ["lost", "lost at any stage"], ...stages]);
}

const column = job => index.scores[job][Number($("metric").value)];

function difference(n) {
  const [one, other] = [column($("job").value)[n], $("other").value === "" ? null : column($("other").value)[n]];
  return one === null || other === null ? null : one - other;
}

function matches(n, words) {
  const job = $("job").value, state = $("state").value, lost = index.lost[job][n];
  const states = { "": true, failed: index.states[job][n] === FAILED, absent: index.states[job][n] === ABSENT, lost: lost >= 0 };
  return (states[state] ?? lost === Number(state)) && words.every(word => haystack[n].includes(word));
}

function sorted(numbers) {
  const score = n => column($("job").value)[n];
  const [key, sign] = { task: [null, 1], up: [score, 1], down: [score, -1], worse: [difference, 1], better: [difference, -1] }[$("order").value];
  if (!key) return numbers;
  const last = n => (key(n) === null ? Infinity : sign * key(n)); // examples without a score are last
  return numbers.sort((a, b) => (last(a) === last(b) ? a - b : last(a) - last(b)));
}

function filter() {
  const words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  found = sorted([...index.ids.keys()].filter(n => matches(n, words)));
  $("count").textContent = `${found.length.toLocaleString("en")} of ${index.ids.length.toLocaleString("en")} examples`;
  list.replaceChildren();
  list.scrollTop = 0;
  more();
  if (found.length) open(found.slice(0, PAGE).includes(opened) ? opened : found[0]);
}

function more() {
  const start = list.children.length;
  list.append(...found.slice(start, start + PAGE).map(row));
}

const shown = score => (score === null || score === undefined ? "–" : score.toFixed(1));
const signed = value => (value === null ? "" : ` (${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)})`);

function row(n) {
  const job = $("job").value, state = index.states[job][n], lost = index.lost[job][n], id = index.ids[n];
  const outcome = state === ABSENT ? "not finished" : state === FAILED ? "failed" : lost >= 0 ? `lost at ${index.stages[lost]}` : "";
  const button = h("button", { type: "button", class: "row", title: id },
    h("span", {}, h("strong", {}, middle(id, 28)), " ", index.questions[n]),
    h("span", { class: "score" }, shown(column(job)[n]) + signed(difference(n))),
    h("span", { class: "given" }, index.predictions[job][n] ? `→ ${index.predictions[job][n]}` : " "),
    h("span", { class: state === FAILED ? "mark bad" : "mark" }, outcome));
  mark(button, n === opened);
  button.addEventListener("click", () => open(n).then(() => { detail.focus({ preventScroll: true }); detail.scrollIntoView({ block: "nearest" }); }));
  return button;
}

function mark(button, isOpen) {
  button.setAttribute("aria-pressed", String(isOpen));
  button.tabIndex = isOpen ? 0 : -1; // the list has one tab stop
}

function onListKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (!step || !list.contains(document.activeElement)) return;
  const rows = [...list.children], place = rows.indexOf(document.activeElement) + step;
  rows[Math.max(0, Math.min(rows.length - 1, place))].focus();
  event.preventDefault();
}

// ---- one example

const span = ([start, end]) => `${start.toLocaleString("en")}–${end.toLocaleString("en")}`;
const length = spans => spans.reduce((sum, [start, end]) => sum + end - start, 0);

function facts(pairs) {
  const kept = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return kept.length ? h("dl", {}, kept.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])) : null;
}

const fold = (title, ...children) => h("details", {}, h("summary", {}, title), ...children);

function lane(name, spans, total) {
  const x = value => (1000 * value) / total;
  const svg = drawn("svg", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": "true" }, drawn("rect", { class: "track", width: 1000, height: 14 }));
  for (const [start, end] of spans) svg.append(drawn("rect", { class: name, x: x(start), width: Math.max(3, x(end) - x(start)), height: 14 }));
  return [h("span", {}, name), svg];
}

function strip(example, job, total) {
  const lanes = Object.entries({ selected: job.selected, read: job.read, cited: job.cited, evidence: example.evidence || [] });
  const share = (name, spans) => ((100 * (job.coverage[name] ?? length(spans))) / total).toFixed(1);
  const text = lanes.filter(([, spans]) => spans.length).map(([name, spans]) => `${name} ${share(name, spans)} %`).join(", ");
  return [
    h("div", { class: "strip", role: "img", "aria-label": `The document from its beginning to its end: ${text}` }, lanes.map(([name, spans]) => lane(name, spans, total))),
    h("p", { class: "note" }, `The document from its beginning to its end: ${text} of ${total.toLocaleString("en")} characters.`),
  ];
}

function placed(place, source) {
  const known = source && source.places[`${place[0]}-${place[1]}`];
  return known ? `${source.id} ${known} (${span(place)})` : span(place);
}

function passage(place, source) {
  if (typeof place === "string") return h("blockquote", {}, place);
  const text = source && source.excerpts[`${place[0]}-${place[1]}`];
  const rest = text === undefined ? 0 : place[1] - place[0] - [...text].length;
  return h("div", {}, h("span", { class: "note" }, placed(place, source)), text === undefined ? null : h("blockquote", {}, text + (rest > 0 ? ` [… ${rest.toLocaleString("en")} characters]` : "")));
}

const andMore = count => (count ? h("p", { class: "note" }, `and ${count} more`) : null);

function call(read, example, source) {
  return h("li", {},
    facts([["round", read.round ? String(read.round + 1) : ""], ["question", read.question === example.question ? "" : read.question], ["output", read.error ? "" : read.text || "(empty)"],
      ["score", read.score === undefined ? "" : String(read.score)], ["not seen", read.cut ? `${read.cut.toLocaleString("en")} characters` : ""],
      ["cited", read.span ? placed(read.span, source) : ""], ["error", read.error]]),
    read.prompt === undefined ? null : fold("Exact input", h("pre", { tabindex: "0" }, read.prompt)),
    fold(`Passages (${read.passages.length + read.more_passages})`, read.passages.map(place => passage(place, source)), andMore(read.more_passages)));
}

function hit([start, end, score], made, source) {
  if (!made) return h("li", {}, `score ${score} `, passage([start, end], source));
  return h("li", {}, `score ${score} ${made.kind} `, h("blockquote", {}, made.text), fold(`Represents (${made.spans.length})`, made.spans.map(place => passage(place, source))));
}

function command(job, id) {
  const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;
  return fold("Command that shows everything", h("pre", { tabindex: "0" }, `leporello explain ${quoted(job.run)} ${quoted(id)}`));
}

function result(place, job, example, source) {
  const about = index.jobs[place], name = index.metrics[Number($("metric").value)];
  const answer = job === null ? "not finished" : job.failure ? "failed" : job.prediction || "(empty)";
  const lost = job && job.lost_at ? `lost at ${job.lost_at}` : "";
  const element = h("details", { class: "job" }, h("summary", { title: about.label }, h("strong", {}, middle(about.name, 30)),
    h("span", { class: "score" }, shown(job && job.scores[name])), h("span", { class: "given" }, answer), h("span", { class: "mark" }, lost)));
  element.open = place === Number($("job").value);
  if (job === null) return element;
  const scores = Object.entries(job.scores).map(([metric, score]) => `${metric} ${shown(score)}`).join(", ");
  element.append(...[
    job.failure ? facts([["failed in", job.failure.stage], ["error", job.failure.error]])
      : facts([["raw answer", job.raw], ["scores", scores], ["coverage", job.ledger], ["notes", (job.notes || []).join("\n")]]),
    ...(source && source.length && !job.failure ? strip(example, job, source.length) : []),
    job.hits.length ? fold(`Hits (${job.hits.length + job.more_hits})`, h("ol", {}, job.hits.map((one, rank) => hit(one, job.passages[rank], source)))) : null,
    job.calls.length ? fold(`Inputs and outputs (${job.calls.length + job.more_calls})`, h("ol", {}, job.calls.map(read => call(read, example, source))), andMore(job.more_calls)) : null,
    command(about, example.id),
  ].filter(Boolean));
  return element;
}

async function open(n) {
  opened = n;
  [...list.children].forEach((button, place) => mark(button, found[place] === n));
  const piece = await unpack(`piece-${task}-${Math.floor(n / index.piece)}`);
  if (opened !== n) return; // another example was opened in the meantime
  const example = piece.examples[n % index.piece];
  const source = example.document === undefined ? null : piece.documents[example.document];
  const about = source ? `${source.title || source.id}, ${source.length.toLocaleString("en")} characters` : "";
  detail.replaceChildren(...[
    h("h3", {}, example.id),
    facts([["question", example.question], ["references", (example.references || []).join("\n")], ["instruction", example.instruction], ["choices", (example.choices || []).join("\n")],
      ["document", about], ["not in the text", source ? source.losses.join("\n") : ""], ["group", example.group], ["fault", example.fault]]),
    example.evidence && example.evidence.length ? fold(`Evidence (${example.evidence.length})`, example.evidence.map(place => passage(place, source))) : null,
    ...example.jobs.map((job, place) => result(place, job, example, source)),
  ].filter(Boolean));
  detail.scrollTop = 0;
}

function onKey(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { $("text").focus(); event.preventDefault(); }
  const isDown = event.key === "ArrowDown" && event.target.id === "text";
  if (isDown || (event.key === "Escape" && (detail.contains(event.target) || event.target.id === "text"))) {
    (list.querySelector("[aria-pressed=true]") || list.firstChild)?.focus();
    event.preventDefault();
  }
}

async function showLost(event) {
  const link = event.target.closest("[data-filter]");
  if (!link) return;
  const [number, job, stage] = link.dataset.filter.split(" ");
  $("task").value = number;
  if (Number(number) !== task) await openTask(Number(number));
  [$("job").value, $("state").value, $("text").value] = [job, stage, ""];
  filter();
}

async function begin() {
  $("filters").hidden = document.querySelector(".browser").hidden = false;
  if (!window.DecompressionStream) { $("count").textContent = "The list of examples needs a browser of 2024 or later."; return; }
  list.addEventListener("scroll", () => { if (list.scrollTop + list.clientHeight > list.scrollHeight - 400) more(); });
  list.addEventListener("keydown", onListKey);
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", showLost);
  $("filters").addEventListener("submit", event => event.preventDefault());
  $("filters").addEventListener("input", async event => { if (event.target.id === "task") await openTask(Number(event.target.value)); filter(); });
  await openTask(0);
  filter();
}

$("theme").addEventListener("change", event => { document.documentElement.dataset.theme = event.target.value; });
begin();
