// Results: what a plan brings, what the verifier said, and where outputs are wrong, drawn. One script with app.js, after it.

function planParts(plan, details) {
  const target = [plan.device, plan.isa].filter(Boolean).join(" ");
  const speedup = `${plan.unmeasured ? "Predicted speed-up" : "Speed-up"} ${decimals(plan.speedup, 2)}x`;
  const caption = plan.unmeasured ? "Time of a run, predicted: the plan was made without the device" : "Median time of a run, measured interleaved";
  const parts = [
    make("p", {}, make("strong", {}, speedup), ` on ${target}, threads: ${number(plan.threads)}`),
    make("figure", {}, make("figcaption", {}, caption), timesPicture(plan))];
  if (details) parts.push(...gainParts(plan, details), ...mutantParts(details.mutants));
  parts.push(...certificateParts(plan, details || {}));
  return details ? [...parts, ...searchParts(plan, details)] : parts;
}

// What made it faster: mutants by what each gains alone; the rest is algorithms, layouts, and what changes when all run together.
function gainParts(plan, details) {
  const gains = details.mutants.map((mutant) => ({
    name: `${mutant.rule}${mutant.where.length ? ` at ${mutant.where[0]}` : ""}`, kind: "mutant",
    value: (number(mutant.original_ns) - number(mutant.mutant_ns)) / 1e6, notes: mutant.saved || []}));
  const search = details.search || {};
  const rest = number(plan.baseline_ms) - number(plan.plan_ms) - gains.reduce((sum, gain) => sum + gain.value, 0);
  const choices = `${number(search.algorithms)} algorithm and ${number(search.layouts)} layout choices`;
  gains.push({name: gains.length ? `the rest: ${choices}` : choices, kind: "rest", value: rest, notes: []});
  if (gains.length === 1 && !number(search.algorithms) && !number(search.layouts))
    return [make("h3", {}, "What made it faster"), make("p", {}, "Nothing: no mutant, algorithm or layout won. The plan is the model's own graph.")];
  const most = Math.max(...gains.map((gain) => gain.value), 1e-9);
  const rows = gains.map((gain) => {
    const bar = make("div", {className: gain.kind});
    bar.style.width = `${100 * Math.max(0, gain.value) / most}%`;
    return make("li", {}, make("span", {className: "long"}, gain.name), make("span", {className: "value"}, `${decimals(gain.value, 3)} ms`),
      make("div", {className: "track", "aria-hidden": "true"}, bar), ...gain.notes.map((note) => make("span", {className: "soft note"}, note)));
  });
  const hint = "A mutant's gain is that of its place alone. A negative rest means that places gain less together than alone.";
  return [make("h3", {}, "What made it faster"), make("ul", {className: "gains"}, ...rows),
    ...(details.mutants.length ? [make("p", {className: "soft"}, hint)] : [])];
}

function certificateParts(plan, details) {
  const certificate = details.certificate || {};
  const facts = make("dl");
  const same = certificate.original_hash && certificate.original_hash === certificate.plan_hash;
  const compared = same ? [] : [
    ["Primes", (certificate.primes || []).join(", ")], ["Elements compared", certificate.elements],
    ["Obligations", certificate.segments], ["Degree", certificate.degree], ["Original graph", certificate.original_hash]];
  setFacts(facts, [
    ["Wrong with probability", same ? "0: the plan's graph is the model's own" : `at most 2^${decimals(plan.bound_log2, 1)}`],
    ["Weights", plan.weights], ["Largest relative error", number(plan.max_relative_error).toExponential(2)],
    ...compared, ["Plan's graph", certificate.plan_hash]]);
  const parts = [make("h3", {}, "Certificate"), facts];
  const rows = (details.numeric || []).map((o) => [o.output, number(o.baseline_max).toExponential(1), number(o.plan_max).toExponential(1)]);
  if (rows.length > 0) {
    parts.push(table("Largest error against float64, as a share of the largest output",
      [{name: "output", long: true}, {name: "model", number: true}, {name: "plan", number: true}], rows));
  }
  return parts;
}

function searchParts(plan, details) {
  const search = details.search || {};
  const facts = make("dl");
  const phases = (search.phases || []).map((one) => `${one.phase} ${decimals(one.seconds, 1)} s`).join(", ");
  setFacts(facts, [
    ["Ended", plan.stop_reason], ["Candidates", search.proposed], ["Equal in part", search.partial], ["Corrected", search.corrected],
    ["Measured", search.measured], ["In the plan", search.chosen], ["Phases", phases], ["Numerics", search.numerics],
    ["Machine", search.identity], ["Made by", search.version && `Mendel ${search.version}`]]);
  const parts = [make("h3", {}, "Search"), facts];
  const time = (nanoseconds) => (nanoseconds ? decimals(nanoseconds / 1e6, 3) : "");
  const rows = (details.candidates || []).map((one) => [one.rule, one.where, one.outcome, time(one.original_ns), time(one.mutant_ns), one.reason]);
  if (rows.length > 0) {
    const columns = [{name: "rule"}, {name: "at", long: true}, {name: "outcome"}, {name: "before, ms", number: true},
      {name: "after, ms", number: true}, {name: "reason", long: true}];
    parts.push(make("details", {}, make("summary", {}, `Candidates that lost: ${rows.length}`), table("Those that came farthest come first", columns, rows)));
  }
  return parts;
}

function timesPicture(plan) {
  const longest = Math.max(number(plan.baseline_ms), number(plan.plan_ms), 1e-9);
  const bar = (y, name, value) => {
    const width = 200 * number(value) / longest;
    return [draw("text", {x: 0, y: y + 14}, name), draw("rect", {x: 60, y, width, height: 18, class: name}),
      draw("text", {x: 68 + width, y: y + 14}, `${decimals(value, 3)} ms`)];
  };
  const text = `before ${decimals(plan.baseline_ms, 3)} ms, after ${decimals(plan.plan_ms, 3)} ms`;
  return draw("svg", {viewBox: "0 0 340 48", class: "times", role: "img", "aria-label": text},
    ...bar(0, "before", plan.baseline_ms), ...bar(24, "after", plan.plan_ms));
}

function mutantParts(mutants) {
  if (mutants.length === 0) return [];
  const milliseconds = (nanoseconds) => (nanoseconds ? decimals(nanoseconds / 1e6, 3) : "");
  const columns = [{name: "rule"}, {name: "claim"}, {name: "where", long: true}, {name: "corrected"},
    {name: "before, ms", number: true}, {name: "after, ms", number: true}];
  const rows = mutants.map((mutant) => [mutant.rule, mutant.claim, mutant.where.join(", "), mutant.mending || "",
    milliseconds(mutant.original_ns), milliseconds(mutant.mutant_ns)]);
  const regions = mutants.flatMap((mutant) => mutant.mended.map((output) => ({
    name: `${mutant.rule}: ${output.output}`, elements: number(output.elements), wrong: number(output.wrong_elements),
    boxes: output.boxes, shape: shapeOf(output)})));
  return [make("h3", {}, "Mutants"), table("What the plan changes in the model", columns, rows),
    ...regionParts("Wrong regions of the mutants, all corrected", regions)];
}

// Plans of older programs report the boxes of a mutant's output, not its shape.
function shapeOf(output) {
  if (output.boxes.every((box) => box.end.length === output.shape.length)) return output.shape;
  const spanned = [];
  for (const box of output.boxes) box.end.forEach((end, d) => { spanned[d] = Math.max(spanned[d] || 0, end); });
  return spanned;
}

function verdictParts(verdict, report) {
  const kind = String(verdict.kind || "").replace("KIND_", "").toLowerCase().replaceAll("_", " ");
  const facts = make("dl");
  setFacts(facts, [
    ["Verdict", kind], ["Reason", verdict.reason],
    ["Wrong with probability", verdict.bound_log2 ? `at most 2^${decimals(verdict.bound_log2, 1)}` : ""],
    ["Random tests", verdict.tests], ["Primes", (verdict.primes || []).join(", ")], ["Seed", verdict.seed]]);
  const outputs = report && Array.isArray(report.outputs) ? report.outputs : verdict.outputs || [];
  const rows = outputs.map((o) => [o.name, (o.shape || []).join(" x "), number(o.elements), number(o.wrong_elements)]);
  const parts = [facts];
  if (rows.length > 0) {
    const columns = [{name: "output", long: true}, {name: "shape"}, {name: "elements", number: true},
      {name: "wrong", number: true}];
    parts.push(table("Outputs", columns, rows));
  }
  const regions = outputs.map((o) => ({
    name: String(o.name), elements: number(o.elements), wrong: number(o.wrong_elements), shape: (o.shape || []).map(number),
    boxes: o.boxes || []}));
  return [...parts, ...regionParts("Wrong regions", regions)];
}

// --- wrong regions, drawn

function regionParts(title, regions) {
  const clean = (box) => ({
    begin: (box.begin || []).map(number), end: (box.end || []).map(number),
    status: box.status === "unproven" ? "unproven" : "wrong"});
  const drawn = regions.filter((region) => region.boxes.length > 0).map((region) => ({...region, boxes: region.boxes.map(clean)}));
  if (drawn.length === 0) return [];
  const place = make("div");
  const output = select("Output", drawn.map((region) => region.name), 0);
  const choices = make("div", {className: "choices"});
  const chosen = () => drawn[output.lastChild.selectedIndex];
  const reset = () => {
    const region = chosen();
    const [row, column] = usefulDimensions(region);
    const names = region.shape.map((extent, d) => `${d} (${extent})`);
    const rows = select("Down: dimension", names, row);
    const columns = select("Across: dimension", names, column);
    choices.replaceChildren(...(drawn.length > 1 ? [output] : []), ...(names.length > 1 ? [rows, columns] : []));
    const redraw = () =>
      place.replaceChildren(...regionPicture(region, rows.lastChild.selectedIndex, columns.lastChild.selectedIndex));
    for (const choice of [rows, columns]) choice.lastChild.addEventListener("change", redraw);
    redraw();
  };
  output.lastChild.addEventListener("change", reset);
  reset();
  return [make("h3", {}, title), choices, place];
}

let selects = 0;

function select(label, names, selected) {
  const id = `select-${++selects}`;
  const list = make("select", {id}, ...names.map((name) => make("option", {}, name)));
  list.selectedIndex = selected;
  return make("span", {}, make("label", {htmlFor: id}, label), list);
}

// The two in which the boxes leave something out, the last two otherwise.
function usefulDimensions(region) {
  const rank = region.shape.length;
  const leavesOut = (d) => region.boxes.some((box) => box.end[d] - box.begin[d] < region.shape[d]);
  const partial = [...Array(rank).keys()].filter(leavesOut);
  const rest = [...Array(rank).keys()].reverse().filter((d) => !partial.includes(d));
  const two = [...partial.reverse(), ...rest].slice(0, 2).sort((a, b) => a - b);
  return two.length === 2 ? two : [-1, 0];
}

function regionPicture(region, row, column) {
  const extent = (d) => (d < 0 ? 1 : Math.max(1, region.shape[d] || 1));
  const across = row === column ? -1 : column;
  const width = 400, height = Math.min(400, Math.max(60, width * extent(row) / extent(across)));
  const range = (box, d, size) => {
    const begin = d < 0 ? 0 : size * box.begin[d] / extent(d), end = d < 0 ? size : size * box.end[d] / extent(d);
    return [Math.min(begin, size - 2), Math.max(end - begin, 2)];
  };
  const text = `${region.wrong.toLocaleString("en")} of ${region.elements.toLocaleString("en")} elements of ${region.name}, ` +
    `boxes: ${region.boxes.length}. The other dimensions are laid over each other.` +
    (region.shape.reduce((product, extent) => product * extent, 1) === region.elements ? "" : " The frame is what the boxes span.");
  const rectangles = region.boxes.slice(0, 2000).map((box) => {
    const [x, w] = range(box, across, width), [y, h] = range(box, row, height);
    return draw("rect", {x: x + 40, y: y + 18, width: w, height: h, class: box.status});
  });
  const picture = draw("svg", {viewBox: `0 0 ${width + 50} ${height + 24}`, class: "regions", role: "img", "aria-label": text},
    draw("rect", {x: 40, y: 18, width, height, class: "tensor"}), ...rectangles,
    draw("text", {x: 40, y: 12}, "0"), draw("text", {x: width + 40, y: 12, "text-anchor": "end"}, extent(across)),
    draw("text", {x: 34, y: 30, "text-anchor": "end"}, "0"),
    draw("text", {x: 34, y: height + 16, "text-anchor": "end"}, extent(row)));
  const rows = region.boxes.slice(0, 200).map((box) =>
    [box.status, box.begin.map((begin, d) => `${begin}..${box.end[d] - 1}`).join(", ")]);
  const list = table("First and last index a dimension", [{name: "status"}, {name: "elements", long: true}], rows);
  return [make("figure", {}, make("figcaption", {}, text), picture),
    make("details", {}, make("summary", {}, "Boxes as text"), list)];
}
