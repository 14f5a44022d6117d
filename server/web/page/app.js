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
const shortTime = (text) => (text ? new Date(text).toLocaleString([], {dateStyle: "short", timeStyle: "short"}) : "");
const shortName = (name) => String(name || "").replace(/^.*\//, "").slice(0, 8);
const sizeText = (bytes) => {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  const power = Math.min(4, Math.floor(Math.log10(Math.max(1, number(bytes))) / 3));
  return `${power ? (number(bytes) / 1000 ** power).toFixed(1) : number(bytes)} ${units[power]}`;
};

// --- the server

class Refused extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

async function ask(path, method = "GET") {
  const token = sessionStorage.getItem("token");
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  if (method === "POST") headers["X-Mendel-Page"] = "1";  // no other site can send this header
  const response = await fetch(path, {method, headers, credentials: "omit", referrerPolicy: "no-referrer"});
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
  for (const view of ["sign-in", "list", "job", "plan"]) byId(view).hidden = view !== id;
  byId("kinds").hidden = id === "sign-in";
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
  clearTimeout(timer);
  show("sign-in");
  byId("sign-out").hidden = true;
  setText(byId("who"), "");
  for (const list of document.querySelectorAll("#rows, dl, #events, #result-body, .files, #plan-body")) {
    list.replaceChildren();
    delete list.dataset.names;
  }
  trouble(tried ? message : "");
  byId("token").value = "";
  byId("token").focus();
}

let session = {caller: "", projects: []};

async function whoAmI() {
  session = await fetchJson("/api/session");
  setText(byId("who"), `${session.caller} (${session.role}), version ${session.version}`);
  byId("sign-out").hidden = sessionStorage.getItem("token") === null;
  const names = session.projects.map((project) => project.name);
  byId("project").replaceChildren(...names.map((name) => make("option", {}, name)));
  byId("projects").hidden = names.length < 2 && (names.length === 0 || names[0] === "default");
}

// The caller's role in the project of a name or address.
const projectOf = (name) => (/^projects\/([^/]+)\//.exec(name) || ["", "default"])[1];
const roleIn = (project) => (session.projects.find((one) => one.name === project) || {}).role || "none";
const maySubmit = (name) => ["submitter", "admin"].includes(roleIn(projectOf(name)));
