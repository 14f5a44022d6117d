// The page's only script: queries the server for JSON and shows it. Data becomes text nodes and numbers, never markup; the server
// forbids the rest (Content-Security-Policy, trusted types).
"use strict";

const byId = (id) => document.getElementById(id);
const ended = (state) => ["SUCCEEDED", "FAILED", "CANCELLED"].includes(state);
const stateOf = (job) => String(job.state || "").replace("JOB_STATE_", "");
const number = (value) => Number(value || 0);
const decimals = (value, digits) => number(value).toFixed(digits);
let epoch = 0;  // grows with each view: answers that come for an older one are dropped
let timer = 0;

// --- elements

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

// Only what changed: who is reading or has the focus there is not disturbed.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setFacts(list, facts) {
  const shown = facts.filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (list.dataset.names !== shown.map(([name]) => name).join("|")) {
    list.dataset.names = shown.map(([name]) => name).join("|");
    list.replaceChildren(...shown.flatMap(([name]) => [make("dt", {}, name), make("dd")]));
  }
  const values = list.querySelectorAll("dd");
  shown.forEach(([, value], i) => setText(values[i], String(value)));
}

function table(caption, columns, rows) {
  const kind = (column) => (column.number ? "number" : column.long ? "long" : "");
  const cell = (value, i) => make("td", {"data-label": columns[i].name, className: kind(columns[i])}, String(value));
  const head = columns.map((column) => make("th", {scope: "col", className: kind(column)}, column.name));
  const body = rows.map((row) => make("tr", {}, ...row.map(cell)));
  return make("table", {className: "stack"}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...body));
}

const timeText = (text) => (text ? new Date(text).toLocaleString() : "");
const shortName = (name) => String(name || "").replace(/^[a-z]+\//, "").slice(0, 8);

// --- the server

class Refused extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

async function ask(path) {
  const token = sessionStorage.getItem("token");
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const response = await fetch(path, {headers, credentials: "omit", referrerPolicy: "no-referrer"});
  if (response.ok) return response;
  const reported = await response.json().catch(() => ({}));
  throw new Refused(response.status, (reported.error && reported.error.message) || `the server answered ${response.status}`);
}

const fetchJson = async (path) => (await ask(path)).json();

function trouble(message) {
  byId("trouble").hidden = !message;
  setText(byId("trouble"), message || "");
}

function show(id) {
  for (const view of ["sign-in", "list", "job"]) byId(view).hidden = view !== id;
}

// Runs `step` now and again after the milliseconds it returns (0: not again). What goes wrong is reported and tried again.
function repeat(step) {
  const mine = ++epoch;
  clearTimeout(timer);
  const current = () => mine === epoch;
  const run = async () => {
    let wait = 5000;
    try {
      wait = await step(current);
      if (current()) trouble("");
    } catch (error) {
      if (!current()) return;
      if (error instanceof Refused && error.code === 401) return signIn(error.message);
      trouble(error instanceof Refused ? error.message : "The server does not answer; trying again.");
      if (error instanceof Refused && error.code < 429) return;
    }
    if (current() && wait > 0) timer = setTimeout(run, document.hidden ? 10000 : wait);
  };
  run();
}

// --- signing in

function signIn(message) {
  const tried = sessionStorage.getItem("token") !== null;
  sessionStorage.removeItem("token");
  ++epoch;
  show("sign-in");
  byId("sign-out").hidden = true;
  setText(byId("who"), "");
  trouble(tried ? message : "");
  byId("token").value = "";
  byId("token").focus();
}

async function whoAmI() {
  const session = await fetchJson("/api/session");
  setText(byId("who"), `${session.caller} (${session.role}), version ${session.version}`);
  byId("sign-out").hidden = sessionStorage.getItem("token") === null;
}

// --- the list

const pages = [""];

function workOf(job) {
  const kinds = {optimize: "optimize", verify_plan: "verify a plan", compare_pair: "compare two models", refit_plan: "new weights"};
  return kinds[Object.keys(job.spec || {})[0]] || "";
}

function progressText(job) {
  const progress = job.progress || {};
  if (stateOf(job) === "PENDING") return `${number(job.queue_position)} before it`;
  if (ended(stateOf(job))) return "";  // what the search believed is not what was delivered
  return `${progress.phase || ""}${progress.best_speedup ? `, ${decimals(progress.best_speedup, 2)}x` : ""}`;
}

function modelsText(job, files) {
  const spec = Object.values(job.spec || {})[0] || {};
  return [spec.model, spec.model_a, spec.model_b].filter(Boolean).map((name) => files[name] || shortName(name)).join(", ");
}

// From the first start to the end, or until now.
function durationText(job) {
  if (!job.start_time) return "";
  const end = job.end_time ? new Date(job.end_time) : new Date();
  const seconds = Math.max(0, Math.round((end - new Date(job.start_time)) / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function resultText(job, speedups) {
  const speedup = speedups[job.plan];
  return speedup ? `${decimals(speedup, 2)}x` : progressText(job);
}

function updateRow(row, job, page) {
  const state = stateOf(job).toLowerCase();
  const values = [null, modelsText(job, page.files || {}), workOf(job), state, resultText(job, page.speedups || {}), durationText(job),
    job.client || "", timeText(job.create_time)];
  values.forEach((value, i) => { if (value !== null) setText(row.cells[i], value); });
  row.cells[3].className = `state state-${state}`;
}

function newRow(job) {
  const labels = ["Job", "Model", "Work", "State", "Result", "Duration", "Client", "Submitted"];
  const row = make("tr", {}, ...labels.map((label) => make("td", {"data-label": label})));
  row.dataset.name = job.name;
  row.cells[1].className = row.cells[6].className = "long";
  row.cells[0].append(make("a", {href: `#/${job.name}`, className: "name"}, shortName(job.name)));
  return row;
}

async function listStep(current) {
  const state = byId("state").value;
  const page = await fetchJson(`/api/jobs?page_size=50&state=${state}&page_token=${encodeURIComponent(pages[pages.length - 1])}`);
  if (!current()) return 0;
  const jobs = page.jobs || [];
  const body = byId("rows");
  const before = new Map([...body.rows].map((row) => [row.dataset.name, row]));
  const rows = jobs.map((job) => before.get(job.name) || newRow(job));
  jobs.forEach((job, i) => updateRow(rows[i], job, page));
  if (rows.length !== body.rows.length || rows.some((row, i) => body.rows[i] !== row)) {
    const focused = document.activeElement;
    body.replaceChildren(...rows);
    if (focused && body.contains(focused)) focused.focus();
  }
  byId("none").hidden = jobs.length > 0;
  byId("newer").disabled = pages.length === 1;
  byId("older").disabled = !page.next_page_token;
  byId("older").dataset.token = page.next_page_token || "";
  return 3000;
}

function showList() {
  document.title = "Jobs - Mendel";
  show("list");
  repeat(listStep);
}

// --- one job

function eventText(event) {
  if (event.state) return String(event.state).replace("JOB_STATE_", "").toLowerCase();
  if (event.warning !== undefined) return `warning: ${event.warning}`;
  return progressLine(event.progress || {});
}

function progressLine(progress) {
  const parts = [[progress.phase, progress.detail].filter(Boolean).join(": ")];
  if (number(progress.candidates)) parts.push(`${progress.candidates} candidates`);
  if (progress.best_speedup) parts.push(`best ${decimals(progress.best_speedup, 2)}x`);
  if (progress.time_left) parts.push(`${Math.round(parseFloat(progress.time_left))} s left`);
  return parts.filter(Boolean).join(", ");
}

function showFacts(job, files) {
  const spec = Object.values(job.spec || {})[0] || {};
  const models = [spec.model, spec.model_a, spec.model_b].filter(Boolean);
  const named = models.map((name) => `${files[name] || "(deleted)"} (${shortName(name)})`).join(" and ");
  setText(byId("job-title"), `Job ${shortName(job.name)}: ${workOf(job)}`);
  document.title = `${stateOf(job).toLowerCase()} - job ${shortName(job.name)} - Mendel`;
  setFacts(byId("facts"), [
    ["State", stateOf(job).toLowerCase()], ["Why", (job.error || {}).message], ["Model", named], ["Shapes", spec.shapes],
    ["Client", job.client], ["Submitted", timeText(job.create_time)], ["Begun", timeText(job.start_time)],
    ["Ended", timeText(job.end_time)], ["Attempts", job.attempts], ["Name", job.name]]);
  const progress = job.progress || {};
  const phase = [progress.phase, progress.detail].filter(Boolean).join(": ");
  setFacts(byId("progress"), [
    ["Phase", phase || (ended(stateOf(job)) ? "" : "waits for a worker")],
    ["Before it", stateOf(job) === "PENDING" ? number(job.queue_position) : ""], ["Candidates", progress.candidates],
    ["A second", progress.candidates_per_second ? decimals(progress.candidates_per_second, 1) : ""],
    ["Best so far", progress.best_speedup && !ended(stateOf(job)) ? `${decimals(progress.best_speedup, 2)}x` : ""],
    ["Time left", progress.time_left && !ended(stateOf(job)) ? `${Math.round(parseFloat(progress.time_left))} s` : ""]]);
}

// Screen readers hear new states and phases at once, the rest every fifteen seconds.
function announce(job, heard) {
  const topic = `${stateOf(job)} ${(job.progress || {}).phase || ""}`;
  if (topic === heard.topic && Date.now() - heard.at < 15000) return;
  heard.topic = topic;
  heard.at = Date.now();
  setText(byId("live"), `${stateOf(job).toLowerCase()}. ${ended(stateOf(job)) ? "" : progressLine(job.progress || {})}`);
}

function fileLink(job, what, text) {
  const link = make("a", {href: `/api/${job.name}/${what}`, download: ""}, text);
  link.addEventListener("click", async (event) => {
    if (sessionStorage.getItem("token") === null) return;
    event.preventDefault();  // a link brings no token along
    try {
      const response = await ask(link.getAttribute("href"));
      const name = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition") || "");
      const url = URL.createObjectURL(await response.blob());
      make("a", {href: url, download: name ? name[1] : "download"}).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (error) {
      trouble(error.message);
    }
  });
  return make("li", {}, link);
}

async function showResult(job, current) {
  const result = await fetchJson(`/api/${job.name}/result`);
  const report = result.report ? await fetchJson(`/api/${job.name}/report`) : null;
  if (!current()) return;
  const body = byId("result-body");
  body.replaceChildren();
  if (result.plan) body.append(...planParts(result.plan, result.details));
  if (result.verdict) body.append(...verdictParts(result.verdict, report));
  byId("result").hidden = body.childElementCount === 0;
  const files = [fileLink(job, "log", "Log (text)")];
  if (result.plan) files.unshift(fileLink(job, "plan", `Plan (${number(result.plan.size_bytes).toLocaleString()} bytes)`));
  if (result.report) files.push(fileLink(job, "report", "The verifier's report (JSON)"));
  if (job.bundle) files.push(fileLink(job, "bundle", "Reproduction bundle (tar)"));
  byId("files").replaceChildren(...files);
}

function showJob(name) {
  const heard = {topic: "", at: 0};
  let after = 0;
  byId("events").replaceChildren();
  byId("result").hidden = true;
  setText(byId("job-title"), `Job ${shortName(name)}`);
  setFacts(byId("facts"), []);
  setFacts(byId("progress"), []);
  byId("files").replaceChildren(fileLink({name}, "log", "Log (text)"));
  show("job");
  repeat(async (current) => {
    const answer = await fetchJson(`/api/${name}?after=${after}`);
    if (!current()) return 0;
    const job = answer.job;
    for (const event of answer.events) {
      after = Math.max(after, number(event.sequence));
      byId("events").append(make("li", {value: number(event.sequence)}, eventText(event)));
    }
    while (byId("events").childElementCount > 500) byId("events").firstChild.remove();
    showFacts(job, answer.files);
    announce(job, heard);
    if (number(job.last_sequence) > after) return 1;
    if (!ended(stateOf(job))) return 1000;
    await showResult(job, current);
    return 0;
  });
}

// --- where the address leads

function route() {
  const found = /^#\/(jobs\/[0-9a-f-]{36})$/.exec(location.hash);
  if (found) showJob(found[1]);
  else showList();
}

async function start() {
  try {
    await whoAmI();
    route();
  } catch (error) {
    if (error instanceof Refused && error.code === 401) return signIn(error.message);
    trouble(error instanceof Refused ? error.message : "The server does not answer; trying again.");
    if (!(error instanceof Refused)) setTimeout(start, 5000);
  }
}

window.addEventListener("hashchange", () => {
  if (!byId("sign-in").hidden) return;
  route();
  byId("main").focus();
});
byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
byId("state").addEventListener("change", () => { pages.length = 1; showList(); });
byId("older").addEventListener("click", (event) => { pages.push(event.target.dataset.token); showList(); });
byId("newer").addEventListener("click", () => { pages.pop(); showList(); });
byId("sign-out").addEventListener("click", () => { sessionStorage.removeItem("token"); signIn(""); });
byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value.trim());
  byId("token").value = "";
  trouble("");
  start();
});

