// Where the address leads, and what clicks do. One script with app.js, the last part.

const kPlace = /^#\/((?:projects\/([a-z0-9-]+)\/)?(jobs|models|plans)(?:\/([0-9a-f-]{36,64}))?)(?:\?(.*))?$/;

// Where nothing is named: the project "default" for those who may see it, their first one otherwise.
const homeProject = () => (roleIn("default") === "none" && session.projects.length > 0 ? session.projects[0].name : "default");

function route() {
  const [, name, project, kind, id, query] = kPlace.exec(location.hash) || ["", "", homeProject(), "jobs", "", ""];
  byId("project").value = project || "default";
  for (const one of ["jobs", "models", "plans"]) {
    const anchor = byId(`to-${one}`);
    anchor.href = `#/${prefixOf(project || "default")}${one}`;
    if (one === kind) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  if (id && kind === "jobs") return showJob(name);
  if (id && kind === "plans") return showPlan(name);
  const wanted = new URLSearchParams(query || "");
  const view = {kind, project: project || "default", state: wanted.get("state") || "", filter: wanted.get("filter") || ""};
  return showList(view);
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
byId("state").addEventListener("change", filterList);
byId("search").addEventListener("submit", (event) => { event.preventDefault(); filterList(); });
byId("older").addEventListener("click", (event) => { pages.push(event.target.dataset.token); showList(shownView); });
byId("newer").addEventListener("click", () => { pages.pop(); showList(shownView); });
byId("cancel").addEventListener("click", (event) => act("cancel", event.target));
byId("again").addEventListener("click", (event) => act("again", event.target));
byId("project").addEventListener("change", (event) => {
  const kind = (kPlace.exec(location.hash) || [])[3] || "jobs";
  location.hash = `#/${prefixOf(event.target.value)}${kind}`;
});
byId("sign-out").addEventListener("click", () => { sessionStorage.removeItem("token"); signIn(""); });
byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value.trim());
  byId("token").value = "";
  trouble("");
  start();
});

start();
