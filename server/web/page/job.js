// One job: facts, progress, actions and files; and one plan. One script with app.js, after it.

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

// Options of the spec that were set, by the names of `mendel submit`.
function optionFacts(spec) {
  const budget = spec.budget || {};
  const seconds = (duration) => (duration ? `${parseFloat(duration)} s` : "");
  return [
    ["Shapes", spec.shapes], ["Device", spec.device], ["Instruction set", spec.isa], ["Threads", spec.threads], ["Numerics", spec.numerics],
    ["Weights", spec.weights], ["Search time", seconds(budget.time)], ["Most candidates", budget.candidates],
    ["Wall time", seconds(budget.wall_time)], ["Memory", budget.memory_bytes ? sizeText(budget.memory_bytes) : ""],
    ["Time limit", seconds(spec.time_limit)], ["Seed", spec.seed], ["Random tests", spec.tests],
    ["Target bound", spec.target_bound_log2 ? `2^${spec.target_bound_log2}` : ""], ["Rules left out", (spec.disabled_rules || []).join(", ")],
    ["Plan", spec.plan ? shortName(spec.plan) : ""]];
}

function showFacts(job, files) {
  const spec = Object.values(job.spec || {})[0] || {};
  const models = [spec.model, spec.model_a, spec.model_b].filter(Boolean);
  const named = models.map((name) => `${files[name] || "(deleted)"} (${shortName(name)})`).join(" and ");
  setText(byId("job-title"), `Job ${shortName(job.name)}: ${workOf(job)}`);
  document.title = `${stateOf(job).toLowerCase()} - job ${shortName(job.name)} - Mendel`;
  setFacts(byId("facts"), [
    ["State", stateOf(job).toLowerCase()], ["Why", (job.error || {}).message], ["Model", named],
    ["Client", job.client], ["Submitted", timeText(job.create_time)], ["Begun", timeText(job.start_time)],
    ["Ended", timeText(job.end_time)], ["Duration", durationText(job)], ["Attempts", job.attempts], ["Name", job.name]]);
  setFacts(byId("options"), [...optionFacts(spec), ["Priority", job.priority]]);
  byId("options-part").hidden = byId("options").childElementCount === 0;
  showProgress(job);
}

// The share of the search's time that has passed; nothing in phases without a limit, whose bar only moves.
function showBar(job) {
  const left = (job.progress || {}).time_left;
  const bar = byId("bar");
  bar.hidden = ended(stateOf(job)) || stateOf(job) === "PENDING";
  if (left && job.start_time) {
    const passed = Math.max(0, (Date.now() - new Date(job.start_time)) / 1000);
    bar.value = Math.min(1, passed / Math.max(passed + parseFloat(left), 0.001));
  } else {
    bar.removeAttribute("value");
  }
}

function showProgress(job) {
  const progress = job.progress || {};
  const live = !ended(stateOf(job));
  const phase = [progress.phase, progress.detail].filter(Boolean).join(": ");
  showBar(job);
  setText(byId("progress-title"), live ? "Progress" : "What happened");
  setFacts(byId("progress"), [
    ["Phase", live ? phase || "waits for a worker" : ""],
    ["Before it", stateOf(job) === "PENDING" ? number(job.queue_position) : ""], ["Candidates", progress.candidates],
    ["A second", live && progress.candidates_per_second ? decimals(progress.candidates_per_second, 1) : ""],
    ["Best so far", live && progress.best_speedup ? `${decimals(progress.best_speedup, 2)}x` : ""],
    ["Time left", live && progress.time_left ? `${Math.round(parseFloat(progress.time_left))} s` : ""]]);
}

// Screen readers hear new states and phases at once, the rest every fifteen seconds.
function announce(job, heard) {
  const topic = `${stateOf(job)} ${(job.progress || {}).phase || ""}`;
  if (topic === heard.topic && Date.now() - heard.at < 15000) return;
  heard.topic = topic;
  heard.at = Date.now();
  setText(byId("live"), `${stateOf(job).toLowerCase()}. ${ended(stateOf(job)) ? "" : progressLine(job.progress || {})}`);
}

// --- what can be done with it

function showActions(job) {
  const admin = roleIn(projectOf(job.name)) === "admin";
  const live = !ended(stateOf(job));
  byId("cancel").hidden = !live || stateOf(job) === "CANCELLING" || !maySubmit(job.name) || !(admin || job.client === session.caller);
  byId("again").hidden = live || !maySubmit(job.name);
  setText(byId("again"), job.plan && (job.spec || {}).optimize ? "Search again with the next seed" : "Run again");
  for (const id of ["cancel", "again"]) byId(id).dataset.job = job.name;
}

async function act(what, button) {
  const view = location.hash;
  button.disabled = true;
  try {
    const answer = await (await ask(`/api/${button.dataset.job}/${what}`, "POST")).json();
    if (location.hash !== view) return;
    trouble("");
    if (what === "cancel") route();
    else location.hash = `#/${answer.job}`;
  } catch (error) {
    if (location.hash === view) trouble(error.message);
  } finally {
    button.disabled = false;
  }
}

// --- files

// Asks until the file has been made.
async function fetchFile(path, say) {
  for (;;) {
    const response = await ask(path);
    if (response.status !== 202) return response;
    say("is being made");
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function fileLink(path, text) {
  const anchor = make("a", {href: `/api/${path}`, download: ""}, text);
  const note = make("span", {className: "soft", role: "status"});
  anchor.addEventListener("click", async (event) => {
    event.preventDefault();  // a link brings no token along, and does not wait for a file that is made
    try {
      const response = await fetchFile(anchor.getAttribute("href"), (what) => setText(note, ` ${what} ...`));
      setText(note, "");
      const name = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition") || "");
      const url = URL.createObjectURL(await response.blob());
      make("a", {href: url, download: name ? name[1] : "download"}).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (error) {
      setText(note, ` ${error.message}`);
    }
  });
  return make("li", {}, anchor, note);
}

function planLinks(plan) {
  return [fileLink(`${plan.name}/plan`, `Plan (${sizeText(plan.size_bytes)})`), fileLink(`${plan.name}/onnx`, "The plan's graph as an ONNX model"),
    fileLink(`${plan.name}/html`, "Report with the graphs (HTML)")];
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
  const files = [fileLink(`${job.name}/log`, "Log (text)")];
  if (result.plan) files.unshift(...planLinks(result.plan));
  if (result.report) files.push(fileLink(`${job.name}/report`, "The verifier's report (JSON)"));
  if (job.bundle) files.push(fileLink(`${job.name}/bundle`, "Reproduction bundle (tar)"));
  byId("files").replaceChildren(...files);
}

function showJob(name) {
  const heard = {topic: "", at: 0};
  let after = 0;
  byId("events").replaceChildren();
  for (const id of ["result", "cancel", "again", "bar", "options-part"]) byId(id).hidden = true;
  setText(byId("job-title"), `Job ${shortName(name)}`);
  for (const id of ["facts", "options", "progress"]) setFacts(byId(id), []);
  byId("files").replaceChildren(fileLink(`${name}/log`, "Log (text)"));
  byId("job-back").href = `#/${prefixOf(projectOf(name))}jobs`;
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
    showActions(job);
    announce(job, heard);
    if (number(job.last_sequence) > after) return 1;
    if (!ended(stateOf(job))) return 1000;
    await showResult(job, current);
    return 0;
  });
}

// --- one plan

function showPlan(name) {
  byId("plan-body").replaceChildren();
  byId("plan-files").replaceChildren();
  setFacts(byId("plan-facts"), []);
  setText(byId("plan-title"), `Plan ${shortName(name)}`);
  document.title = `Plan ${shortName(name)} - Mendel`;
  byId("plan-back").href = `#/${prefixOf(projectOf(name))}plans`;
  show("plan");
  repeat(async (current) => {
    const {plan, files, details} = await fetchJson(`/api/${name}`);
    if (!current()) return 0;
    setFacts(byId("plan-facts"), [["Model", `${files[plan.model] || "(deleted)"} (${shortName(plan.model)})`],
      ["Made", timeText(plan.create_time)], ["Name", plan.name]]);
    byId("plan-job").href = `#/${plan.job}`;
    byId("plan-job-part").hidden = !plan.job;
    byId("plan-body").replaceChildren(...planParts(plan, details));
    byId("plan-files").replaceChildren(...planLinks(plan));
    return 0;
  });
}
