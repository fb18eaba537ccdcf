"use strict";
// The list shows the index of a task. The detail of an example is unpacked when the example is opened.
// All texts of runs and documents are inserted with textContent, so they are never parsed as HTML.
const ROW = 58, SPARE = 6, STATES = { absent: 0, done: 1, failed: 2 };
const $ = id => document.getElementById(id);
const list = $("list"), rows = $("rows"), detail = $("detail");
const unpacked = new Map();
let task = 0, index = null, shown = [], at = 0, opened = -1, haystack = [];

function h(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return node;
}

function drawn(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function unpack(id) {
  if (!unpacked.has(id)) {
    if (unpacked.size > 30) unpacked.delete(unpacked.keys().next().value);
    const bytes = Uint8Array.from(atob($(id).textContent), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(id, new Response(stream).json());
  }
  return unpacked.get(id);
}

// ---- the list

function options(select, values) {
  select.replaceChildren(...values.map(([value, text]) => h("option", { value }, text)));
}

async function openTask(number) {
  task = number;
  opened = -1;
  at = 0;
  index = await unpack(`index-${task}`);
  haystack = index.ids.map((id, n) => [id, index.questions[n], ...index.predictions.map(p => p[n])].join("\n").toLowerCase());
  const labels = index.jobs.map((job, n) => [n, job.label]);
  options($("job"), labels);
  options($("other"), [["", "–"], ...labels]);
  options($("metric"), index.metrics.map((name, n) => [n, name]));
  options($("lost-at"), [["", "–"], ["any", "any stage"], ["-1", "no stage"], ...index.stages.map((name, n) => [n, name])]);
  if (labels.length > 1) $("other").value = "1";
  filter();
}

const column = job => index.scores[job][Number($("metric").value) || 0] || [];
const number = id => ($(id).value === "" ? null : Number($(id).value));

function difference(n) {
  const [one, other] = [column(Number($("job").value))[n], column(Number($("other").value))[n]];
  return $("other").value === "" || one == null || other == null ? null : one - other;
}

function keeps(n, job, scores) {
  const [state, lost, low, high] = [$("state").value, $("lost-at").value, number("low"), number("high")];
  if (state !== "" && index.states[job][n] !== Number(state)) return false;
  if (lost === "any" ? index.lost[job][n] < 0 : lost !== "" && index.lost[job][n] !== Number(lost)) return false;
  return (low === null || (scores[n] != null && scores[n] >= low)) && (high === null || (scores[n] != null && scores[n] <= high));
}

function sort(found, key, down) {
  const keys = new Map(found.map(n => [n, key(n)]));
  const missing = found.filter(n => keys.get(n) == null), known = found.filter(n => keys.get(n) != null);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  known.sort((a, b) => (down ? -1 : 1) * compare(keys.get(a), keys.get(b)) || a - b);
  return [...known, ...missing];
}

function filter() {
  const job = Number($("job").value), scores = column(job), words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = index.ids.map((_, n) => n);
  const found = all.filter(n => words.every(word => haystack[n].includes(word)) && keeps(n, job, scores));
  const orders = {
    task: () => found,
    id: () => sort(found, n => index.ids[n], false),
    up: () => sort(found, n => scores[n], false),
    down: () => sort(found, n => scores[n], true),
    worse: () => sort(found, difference, false),
    better: () => sort(found, difference, true),
  };
  shown = orders[$("order").value]();
  at = Math.max(0, shown.indexOf(opened));
  $("count").textContent = `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} examples`;
  rows.style.height = `${Math.max(1, shown.length) * ROW}px`;
  list.scrollTop = 0;
  draw();
}

const told = score => (score == null ? "–" : score.toFixed(1));

function row(place) {
  const n = shown[place], job = Number($("job").value), state = index.states[job][n], lost = index.lost[job][n];
  const apart = difference(n);
  const mark = state === STATES.absent ? "not finished" : state === STATES.failed ? "failed" : lost >= 0 ? `lost: ${index.stages[lost]}` : "";
  const score = told(column(job)[n]) + (apart === null ? "" : ` (${apart < 0 ? "−" : "+"}${Math.abs(apart).toFixed(1)})`);
  const node = h("div", { class: "row", role: "option", id: `row-${place}`, "aria-selected": String(place === at), "aria-setsize": shown.length, "aria-posinset": place + 1 },
    h("div", {}, h("strong", {}, index.ids[n]), " ", index.questions[n]),
    h("div", { class: "score" }, score),
    h("div", { class: "said" }, index.predictions[job][n] ? `→ ${index.predictions[job][n]}` : " "),
    h("div", { class: mark === "failed" ? "mark bad" : "mark" }, mark));
  node.style.top = `${place * ROW}px`;
  node.addEventListener("click", () => { at = place; draw(); open(n); });
  return node;
}

function draw() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
  const made = [];
  for (let place = first; place < last; place++) made.push(row(place));
  if (!made.length) made.push(h("div", { class: "row", role: "option", "aria-selected": "false", "aria-disabled": "true" }, "No example matches."));
  rows.replaceChildren(...made);
  if ($(`row-${at}`)) list.setAttribute("aria-activedescendant", `row-${at}`);
  else list.removeAttribute("aria-activedescendant");
}

function go(place) {
  at = Math.max(0, Math.min(shown.length - 1, place));
  const top = at * ROW, page = list.clientHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW > list.scrollTop + page) list.scrollTop = top + ROW - page;
  draw();
}

function onListKey(event) {
  const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const places = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: shown.length - 1 };
  if (event.key in places) go(places[event.key]);
  else if ((event.key === "Enter" || event.key === " ") && shown.length) open(shown[at]);
  else return;
  event.preventDefault();
}

// ---- one example

const span = ([start, end]) => `${start.toLocaleString("en")}–${end.toLocaleString("en")}`;
const length = spans => spans.reduce((sum, [start, end]) => sum + end - start, 0);

function facts(pairs) {
  const kept = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return kept.length ? h("dl", {}, kept.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])) : null;
}

function merged(spans) {
  const found = [];
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const before = found[found.length - 1];
    if (before && start <= before[1]) before[1] = Math.max(before[1], end);
    else found.push([start, end]);
  }
  return found;
}

function lane(name, spans, total, hatched) {
  const wide = 1000, x = value => (wide * value) / total;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} 14`, preserveAspectRatio: "none", "aria-hidden": "true" }, drawn("rect", { class: "track", width: wide, height: 14 }));
  if (hatched) {
    let path = "";
    for (let place = 0; place < wide; place += 10) path += `M${place} 14L${place + 10} 0`;
    svg.append(drawn("path", { class: "never", d: path }));
  }
  for (const [start, end] of spans) {
    svg.append(drawn("rect", { class: name, x: x(start), width: Math.max(3, x(end) - x(start)), height: 14 }));
  }
  return [h("span", {}, name), svg];
}

function strip(example, job, total) {
  const cited = job.calls.filter(call => call.span).map(call => call.span);
  const lanes = { selected: job.selected, read: job.read, cited: merged(cited), evidence: merged(example.evidence || []) };
  const kept = Object.entries(lanes).filter(([name, spans]) => spans.length || name === "selected" || name === "read");
  const size = { selected: job.coverage.selected, read: job.coverage.read };
  const share = (name, spans) => ((100 * (size[name] ?? length(spans))) / total).toFixed(1);
  const say = ([name, spans]) => `${name} ${spans.length ? `${share(name, spans)} % (${spans.slice(0, 12).map(span).join(", ")}${spans.length > 12 ? ", …" : ""})` : "nothing"}`;
  const never = (100 * (total - job.coverage.read)) / total;
  const text = `${total.toLocaleString("en")} characters: ${kept.map(say).join("; ")}; never shown to the reader ${never.toFixed(1)} %`;
  return [
    h("div", { class: "strip", role: "img", "aria-label": `The document from its beginning to its end, ${text}` }, kept.map(([name, spans]) => lane(name, spans, total, name === "read"))),
    h("p", { class: "note" }, `From the document's beginning to its end; hatched: never shown to the reader. ${text}.`),
  ];
}

function placed(place, document_) {
  const told = document_ && document_.places[`${place[0]}-${place[1]}`];
  return told ? `${document_.id} ${told} (${span(place)})` : span(place);
}

function passage(place, document_) {
  if (typeof place === "string") return h("blockquote", {}, place);
  const text = document_ && document_.excerpts[`${place[0]}-${place[1]}`];
  const more = text === undefined ? 0 : place[1] - place[0] - [...text].length;
  return h("div", {}, h("span", { class: "note" }, placed(place, document_)), text === undefined ? null : h("blockquote", {}, text + (more > 0 ? ` [… ${more.toLocaleString("en")} characters]` : "")));
}

function fold(title, open_, ...children) {
  return h("details", open_ ? { open: "" } : {}, h("summary", {}, title), ...children);
}

function call(one, example, document_) {
  const own = one.question !== example.question ? one.question : "";
  return h("li", {},
    facts([["round", String(one.round + 1)], ["question", own], ["output", one.error ? "" : one.text || "(empty)"], ["score", one.score === undefined ? "" : String(one.score)],
      ["not seen", one.cut ? `${one.cut.toLocaleString("en")} characters` : ""], ["cited", one.span ? placed(one.span, document_) : ""], ["error", one.error]]),
    one.prompt === undefined ? null : fold("Exact input", false, h("pre", { tabindex: "0" }, one.prompt)),
    fold(`Passages (${one.passages.length + one.more_passages})`, false, one.passages.map(place => passage(place, document_)), one.more_passages ? h("p", { class: "note" }, `and ${one.more_passages} more`) : null));
}

function hit([start, end, score], made, document_) {
  if (!made) return h("li", {}, `score ${score} `, passage([start, end], document_));
  const spans = made.spans.map(span => passage(span, document_));
  return h("li", {}, `score ${score} ${made.kind} `, h("blockquote", {}, made.text), fold(`Represents (${spans.length})`, false, ...spans));
}

function command(job, id) {
  const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;
  const text = `python run_pipeline.py explain ${quoted(job.run)} ${quoted(id)}`;
  const button = h("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Copying failed"; }));
  return [h("p", { class: "note" }, "Show everything: "), h("pre", { tabindex: "0" }, text), button];
}

function jobDetail(number_, job, example, document_) {
  const own = index.jobs[number_];
  const first = number_ === Number($("job").value);
  const head = `${own.label}: ${job === null ? "not finished" : job.failure ? "failed" : Object.entries(job.scores).map(([name, score]) => `${name} ${told(score)}`).join(", ")}`;
  const node = fold(head, first);
  node.className = "job";
  if (job === null) return node;
  node.append(...[
    job.failure ? facts([["failed in", job.failure.stage], ["error", job.failure.error]]) : null,
    facts([["prediction", job.failure ? "" : job.prediction || "(empty)"], ["raw answer", job.raw], ["lost at", job.lost_at], ["ledger", job.ledger], ["not in the text", document_ ? document_.losses.join("\n") : ""], ["notes", (job.notes || []).join("\n")]]),
    ...(document_ && document_.length && !job.failure ? strip(example, job, document_.length) : []),
    job.hits.length ? fold(`Hits (${job.hits.length + job.more_hits})`, false, h("ol", {}, job.hits.map((found, rank) => hit(found, job.passages[rank], document_)))) : null,
    job.calls.length ? fold(`Inputs and outputs (${job.calls.length + job.more_calls})`, false, h("ol", {}, job.calls.map(one => call(one, example, document_))), job.more_calls ? h("p", { class: "note" }, `and ${job.more_calls} more`) : null) : null,
    ...command(own, example.id),
  ].filter(Boolean));
  return node;
}

async function open(n) {
  opened = n;
  const piece = await unpack(`piece-${task}-${Math.floor(n / index.piece)}`);
  if (opened !== n) return; // another example was opened in the meantime
  const example = piece.examples[n % index.piece];
  const document_ = example.document === undefined ? null : piece.documents[example.document];
  const about = document_ ? `${document_.title || document_.id}, ${document_.length.toLocaleString("en")} characters` : "";
  detail.replaceChildren(...[
    h("h3", {}, example.id),
    facts([["question", example.question], ["instruction", example.instruction], ["choices", (example.choices || []).join("\n")], ["references", (example.references || []).join("\n")],
      ["document", about], ["group", example.group], ["fault", example.fault]]),
    example.evidence && example.evidence.length ? fold(`Evidence (${example.evidence.length})`, false, example.evidence.map(place => passage(place, document_))) : null,
    ...example.jobs.map((job, number_) => jobDetail(number_, job, example, document_)),
  ].filter(Boolean));
  detail.scrollTop = 0;
  detail.focus();
}

function onKey(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { $("text").focus(); event.preventDefault(); }
  if (event.key === "Escape" && (detail.contains(event.target) || event.target.id === "text")) list.focus();
  if (event.key === "ArrowDown" && event.target.id === "text") { list.focus(); event.preventDefault(); }
}

function begin() {
  if (!window.DecompressionStream) { $("count").textContent = "The list of examples needs a browser of 2023 or later."; return; }
  $("filters").hidden = list.hidden = false;
  let waiting = 0;
  list.addEventListener("scroll", () => { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); }); });
  list.addEventListener("keydown", onListKey);
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", draw);
  $("filters").addEventListener("submit", event => event.preventDefault());
  $("filters").addEventListener("input", event => (event.target.id === "task" ? openTask(Number(event.target.value)) : filter()));
  openTask(0);
}

$("theme").addEventListener("change", event => { document.documentElement.dataset.theme = event.target.value; });
begin();
