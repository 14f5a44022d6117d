// Lists of jobs, models and plans, with a filter and pages. One script with app.js, after it.

const fileName = (files, name) => files[name] || (name ? `${shortName(name)} (deleted)` : "");
const link = (href, text, kind) => make("a", {href, className: kind || ""}, text);

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
  return [spec.model, spec.model_a, spec.model_b].filter(Boolean).map((name) => fileName(files, name)).join(", ");
}

// From the first start to the end, or until now.
function durationText(job) {
  if (!job.start_time) return "";
  const end = job.end_time ? new Date(job.end_time) : new Date();
  const seconds = Math.max(0, Math.round((end - new Date(job.start_time)) / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

const jobColumns = ["Job", "Model", "Work", "State", "Result", "Duration", "Client", "Submitted"];

function jobCells(job, page) {
  const speedup = (page.speedups || {})[job.plan];
  return [null, modelsText(job, page.files || {}), workOf(job), stateOf(job).toLowerCase(),
    speedup ? `${decimals(speedup, 2)}x` : progressText(job), durationText(job), job.client || "", shortTime(job.create_time)];
}

function rulesText(plan) {
  return Object.entries(plan.mutants || {}).map(([rule, count]) => (count > 1 ? `${rule} (${count})` : rule)).join(", ");
}

// A kind of list: its columns, those with long texts, the cells of a row (null: the link), and what the filter's hint says.
const lists = {
  jobs: {
    title: "Jobs", columns: jobColumns, long: [1, 6], states: true, hint: "resnet, or client = ann AND create_time > \"2026-05-01T00:00:00Z\"",
    cells: jobCells, none: "There are no such jobs."},
  models: {
    title: "Models", columns: ["Model", "File", "Size", "Files", "Stored", "More"], long: [1], hint: "resnet, or size_bytes > 1000000",
    cells: (model) => [null, model.main_file, sizeText(model.size_bytes), String((model.files || []).length), shortTime(model.create_time), null],
    none: "There are no such models."},
  plans: {
    title: "Plans", columns: ["Plan", "Model", "Speed-up", "Before, ms", "After, ms", "Device", "Rules", "Size", "Made"], long: [1, 6],
    hint: "resnet, or speedup > 1.2 AND device = cpu", none: "There are no such plans.",
    cells: (plan, page) => [null, fileName(page.files || {}, plan.model), `${decimals(plan.speedup, 2)}x${plan.unmeasured ? " (predicted)" : ""}`,
      decimals(plan.baseline_ms, 3), decimals(plan.plan_ms, 3), [plan.device, plan.isa].filter(Boolean).join(" "), rulesText(plan),
      sizeText(plan.size_bytes), shortTime(plan.create_time)]},
};

const prefixOf = (project) => (project === "default" ? "" : `projects/${project}/`);
const listAddress = (view, query) => {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${prefixOf(view.project)}${view.kind}${text ? `?${text}` : ""}`;
};

function newRow(view, item) {
  const kind = lists[view.kind];
  const row = make("tr", {}, ...kind.columns.map((label) => make("td", {"data-label": label})));
  row.dataset.name = item.name;
  for (const i of kind.long) row.cells[i].className = "long";
  if (view.kind === "models") {
    const filter = `model = ${item.name}`;
    row.cells[0].append(make("span", {className: "name"}, shortName(item.name)));
    row.cells[5].append(link(listAddress({...view, kind: "jobs"}, {filter}), "jobs"), ", ",
      link(listAddress({...view, kind: "plans"}, {filter}), "plans"));
  } else {
    row.cells[0].append(link(`#/${item.name}`, shortName(item.name), "name"));
  }
  return row;
}

function updateRow(view, row, item, page) {
  const values = lists[view.kind].cells(item, page);
  values.forEach((value, i) => { if (value !== null) setText(row.cells[i], value); });
  if (view.kind === "jobs") row.cells[3].className = `state state-${values[3]}`;
}

function showRows(view, page) {
  const items = page[view.kind] || [];
  const body = byId("rows");
  const before = new Map([...body.rows].map((row) => [row.dataset.name, row]));
  const rows = items.map((item) => before.get(item.name) || newRow(view, item));
  items.forEach((item, i) => updateRow(view, rows[i], item, page));
  if (rows.length !== body.rows.length || rows.some((row, i) => body.rows[i] !== row)) {
    const focused = document.activeElement;
    body.replaceChildren(...rows);
    if (focused && body.contains(focused)) focused.focus();
  }
  byId("none").hidden = items.length > 0;
  byId("table").hidden = items.length === 0;
}

let pages = [""];

async function listStep(view, current) {
  const query = new URLSearchParams({page_size: 50, page_token: pages[pages.length - 1], filter: view.filter});
  if (view.state) query.set("state", view.state);
  const page = await fetchJson(`/api/${prefixOf(view.project)}${view.kind}?${query}`);
  if (!current()) return 0;
  showRows(view, page);
  byId("newer").disabled = pages.length === 1;
  byId("older").disabled = !page.next_page_token;
  byId("pages").hidden = pages.length === 1 && !page.next_page_token;
  byId("older").dataset.token = page.next_page_token || "";
  return view.kind === "jobs" ? 3000 : 15000;
}

let shownView = null;

function showList(view) {
  const kind = lists[view.kind];
  document.title = `${kind.title} - Mendel`;
  setText(byId("list-title"), kind.title);
  if (!shownView || shownView.kind !== view.kind || shownView.project !== view.project) byId("rows").replaceChildren();
  if (shownView !== view) pages = [""];
  shownView = view;
  byId("heads").replaceChildren(...kind.columns.map((name) => make("th", {scope: "col"}, name)));
  byId("states").hidden = !kind.states;
  byId("state").value = view.state;
  byId("filter").value = view.filter;
  byId("filter").placeholder = kind.hint;
  byId("none").textContent = kind.none;
  show("list");
  repeat((current) => listStep(view, current));
}

function filterList() {
  const query = {state: shownView.kind === "jobs" ? byId("state").value : "", filter: byId("filter").value.trim()};
  const address = listAddress(shownView, query);
  if (location.hash !== address) location.hash = address;
  else route();
}
