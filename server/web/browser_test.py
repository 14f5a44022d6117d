#!/usr/bin/env python3
"""The web page in a headless Chromium against a real server with real jobs. usage: browser_test.py MENDEL [--pictures FOLDER]

--pictures also writes the documentation's pictures. Without a browser the test is skipped (exit code 77).
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import devtools  # noqa: E402
import test_models  # noqa: E402

CONTRAST = """(() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map(Number).map(channel); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return Math.min(...[...document.querySelectorAll("main h1, main td, main th, main dt, main dd, main a, figcaption")].map((e) => {
    const ink = light(getComputedStyle(e).color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }));
})()"""
EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "squeezenet1_1.onnx"
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what)


class Server:
    """`mendel serve` in a folder; waits until it reports the page's port (or serves, without a page)."""

    def __init__(self, mendel, folder, name, port, *more):
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.address = f"unix:{folder}/{name}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([mendel, "serve", "--listen", self.address, "--data", f"{folder}/data", "--metrics-listen", "",
                                             "--drain-seconds", "2", "--http-port", port, *more], stderr=log)
        event = "serving" if port == "none" else "web page"
        self.url = ""
        until = time.monotonic() + devtools.PATIENCE
        while not self.url:
            for line in self.log.read_text().splitlines():
                fact = json.loads(line) if line.startswith("{") else {}
                if fact.get("event") == event:
                    self.url = f"http://127.0.0.1:{fact['port']}/"
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"no server: {self.log.read_text()}")
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def check_phone_and_colors(browser, view):
    for width, dark in [(360, False), (360, True), (800, False), (1000, True), (1000, False)]:
        browser.screen(width, 800, dark)
        over = browser.value("document.documentElement.scrollWidth - innerWidth")
        check(over <= 0, f"{view}: {over} pixels too wide on a screen of {width}")
        contrast = browser.value(CONTRAST)
        check(contrast >= 4.5, f"{view}: contrast {contrast:.2f} (dark: {dark})")


def check_live_progress(browser, server, mendel, folder, submit):
    """A job is watched from the queue to its end without a touch."""
    job = submit("whole.onnx", "--budget", "1s")
    browser.open(server.url + "#/" + job)
    browser.wait("document.querySelector('#facts').innerText.includes('pending')")
    browser.value("heardTexts = []; new MutationObserver(() => heardTexts.push(document.querySelector('#live').textContent))"
                  ".observe(document.querySelector('#live'), {childList: true, characterData: true, subtree: true}); 0")
    worker = Server(mendel, folder, "worker", "none", "--concurrent-jobs", "1")
    browser.wait("!document.querySelector('#result').hidden")
    check(browser.value("heardTexts.some((text) => text.includes('succeeded'))"), "the live region reports the end")
    check("running" in browser.value("document.querySelector('#events').textContent"), "events are listed")
    return job, worker


def downloaded(browser, folder, selector, name):
    """The bytes of the file that a click on a link brings, or None."""
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.value(f"document.querySelector({json.dumps(selector)}).click()")
    got = folder / name
    until = time.monotonic() + devtools.PATIENCE
    while not (got.exists() and not got.with_name(name + ".crdownload").exists()) and time.monotonic() < until:
        time.sleep(0.05)
    if not got.exists():
        return None
    data = got.read_bytes()
    got.unlink()
    return data


def check_plan(browser, mendel, folder, plan):
    check("Wrong with probability" in browser.value("document.querySelector('#result').innerText"), "the certificate's bound is shown")
    check(browser.value("document.querySelectorAll('#result svg.times rect').length") == 2, "times are drawn")
    check(test_models.HOSTILE in browser.value("document.querySelector('#facts').textContent"), "a hostile file name is text")
    check("What made it faster" in browser.value("document.querySelector('#result').textContent"), "the gain is explained")
    check(browser.value("document.querySelector('#options').textContent").startswith("Threads1Search time1 s"), "options are listed")
    digest = hashlib.sha256(plan.read_bytes()).hexdigest()
    stem = f"mendel-{digest[:8]}"
    check(downloaded(browser, folder, "#files a[href$='/plan']", f"{stem}.plan") == plan.read_bytes(), "the plan is downloaded")
    own = subprocess.run([mendel, "export", str(plan), "--onnx", "own.onnx"], capture_output=True, text=True)
    check(own.returncode == 0 and downloaded(browser, folder, "#files a[href$='/onnx']", f"{stem}.onnx") == pathlib.Path("own.onnx").read_bytes(),
          "the plan's graph is downloaded as `mendel export` writes it")
    report = (downloaded(browser, folder, "#files a[href$='/html']", f"{stem}.html") or b"").decode()
    check("<h2>Graph</h2>" in report and "<svg" in report, "the report is that of `mendel explain --html`")
    check(test_models.HOSTILE not in report, "a hostile name is text in the report")
    browser.open(browser.value("location.href.split('#')[0]") + f"#/plans/{digest}")
    browser.wait("document.querySelectorAll('#plan-files a').length === 3 && document.querySelector('#plan-body svg.times')")
    check(test_models.HOSTILE in browser.value("document.querySelector('#plan-facts').textContent"), "a plan's page names its model")


def check_regions(browser):
    """The cross in the middle, and what choosing another dimension does."""
    browser.wait("document.querySelector('svg.regions')")
    boxes = browser.value("document.querySelectorAll('svg.regions .wrong').length")
    check(boxes >= 2, f"{boxes} boxes are drawn")
    check("480 of 2,048" in browser.value("document.querySelector('figcaption').textContent"), "the caption counts")
    drawn = "document.querySelector('svg.regions').outerHTML"
    before = browser.value(drawn)
    check(browser.value("document.querySelectorAll('.choices select').length") == 2, "two dimensions can be chosen")
    browser.value("(() => { const s = document.querySelector('.choices select'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })()")
    check(browser.value(drawn) != before, "another dimension is another picture")
    check(browser.value("document.querySelectorAll('main img').length") == 0, "a hostile output name is text")


def check_corrected_regions(browser):
    """A corrected box of a plan is drawn in its output's shape; a plan of an older program reports none, and the frame is what boxes span."""
    mutant = ('{rule: "r", claim: "partial", where: [], mending: "recompute", mended: [{output: "y", elements: 256, wrong_elements: 32, shape: %s, '
              'boxes: [{begin: [0, 0, 3, 0], end: [1, 4, 4, 8]}]}]}')
    part = "(() => { const parts = make('div', {}, ...mutantParts([%s])); return parts.querySelector('%s').%s; })()"
    for shape, height, spanned in [("[1, 4, 8, 8]", "400", False), ("[]", "200", True)]:
        ask = (mutant % shape, "svg.regions rect.tensor", "getAttribute('height')")
        check(browser.value(part % ask) == height, f"the frame of {shape} is as high as its share: {browser.value(part % ask)}")
        caption = browser.value(part % (mutant % shape, "figcaption", "textContent"))
        check(("what the boxes span" in caption) == spanned, f"the caption of {shape}: {caption}")


def check_predicted_times(browser):
    for unmeasured in (True, False):
        text = browser.value("make('div', {}, ...planParts({speedup: 2, device: 'cuda', unmeasured: %s}, null)).textContent" % str(unmeasured).lower())
        check(("Predicted speed-up 2.00x" in text) == unmeasured and ("Time of a run, predicted" in text) == unmeasured, f"predicted times: {text}")


def check_keyboard(browser, server):
    """From the list into a job by Tab and Enter alone; where the focus is can be seen."""
    browser.open(server.url + "#/")
    browser.wait("document.querySelectorAll('#rows tr').length > 0")
    for _ in range(20):
        browser.key("Tab")
        check(browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none",
              f"the focus is not seen on {browser.value('document.activeElement.outerHTML')[:80]}")
        if browser.value("document.activeElement.matches('#rows a')"):
            break
    browser.key("Enter")
    browser.wait("location.hash.startsWith('#/jobs/') && !document.querySelector('#job').hidden")


def check_actions(browser, server, submit):
    """A waiting job is cancelled, and its work is submitted again, by the page's buttons."""
    job = submit(str(EXAMPLE), "--budget", "600s")
    browser.open(server.url + "#/" + job)
    browser.wait("!document.querySelector('#cancel').hidden")
    browser.wait("document.querySelector('#facts').innerText.includes('running')")
    browser.wait("!document.querySelector('#bar').hidden && document.querySelector('#bar').value > 0")
    for what in ("Phase", "Candidates", "Time left"):
        browser.wait(f"document.querySelector('#progress').textContent.includes('{what}')")
    check_phone_and_colors(browser, "a live job")
    browser.value("document.querySelector('#cancel').click()")
    browser.wait("!document.querySelector('#again').hidden")
    state = browser.value("document.querySelector('#facts dd').textContent")
    check(state in ("succeeded", "cancelled"), f"the job was cancelled: {state}")
    browser.value("document.querySelector('#again').click()")
    browser.wait(f"location.hash.startsWith('#/jobs/') && location.hash !== '#/{job}'")
    browser.wait("!document.querySelector('#cancel').hidden")
    again = browser.value("location.hash")
    browser.value("document.querySelector('#cancel').click()")
    browser.wait("document.querySelector('#cancel').hidden && /succeeded|cancelled/.test(document.querySelector('#facts').textContent)")
    return [job, again[2:]]


def check_lists(browser, server, hostile):
    """Filters, and the lists of models and plans."""
    browser.open(server.url + "#/jobs")
    browser.wait("document.querySelectorAll('#rows tr').length > 0")
    browser.value("(document.querySelector('#filter').value = 'model : cut', document.querySelector('#search').requestSubmit())")
    browser.wait("document.querySelectorAll('#rows tr').length === 1")
    check("filter=" in browser.value("location.hash"), "the address has the filter")
    browser.value("(document.querySelector('#filter').value = 'color = red', document.querySelector('#search').requestSubmit())")
    browser.wait("document.querySelector('#trouble').textContent.includes('create_time')")
    browser.complaints = [text for text in browser.complaints if "400" not in text]
    browser.open(server.url + "#/models")
    browser.wait("document.querySelectorAll('#rows tr').length === 4")
    check(hostile in browser.value("document.querySelector('#rows').textContent"), "models are listed by their files")
    check_phone_and_colors(browser, "models")
    browser.value("[...document.querySelectorAll('#rows tr')].find((row) => row.textContent.includes('cut.onnx')).querySelector('a').click()")
    browser.wait("location.hash.startsWith('#/jobs?') && document.querySelectorAll('#rows tr').length === 1")
    browser.open(server.url + "#/plans")
    browser.wait("document.querySelectorAll('#rows tr').length >= 2")
    check_phone_and_colors(browser, "plans")
    browser.value("document.querySelector('#rows a').click()")
    browser.wait("document.querySelectorAll('#plan-files a').length === 3")
    check_phone_and_colors(browser, "a plan's page")


def check_projects(browser, mendel, folder):
    """A caller of two projects chooses between them; a reader has no buttons."""
    auth = folder / "projects"
    auth.write_text("".join(f"{name} {roles} sha256:{hashlib.sha256(name.encode()).hexdigest()}\n"
                            for name, roles in [("ann", "vision:submitter,speech:reader"), ("bob", "vision:reader")]))
    (folder / "tenants").mkdir()
    server = Server(mendel, folder / "tenants", "server", "0", "--concurrent-jobs", "0", "--auth-file", str(auth))
    submitted = subprocess.run([mendel, "submit", "whole.onnx", "--server", server.address, "--project", "vision", "--json"],
                               env={**os.environ, "MENDEL_TOKEN": "ann"}, capture_output=True, text=True)
    check(submitted.returncode == 0, f"submit into a project: {submitted.stderr}")
    sign_in = "(document.querySelector('#token').value = '%s', document.querySelector('#sign-in').requestSubmit())"
    browser.open(server.url)
    browser.wait("!document.querySelector('#sign-in').hidden")
    browser.value(sign_in % "ann")
    browser.wait("!document.querySelector('#projects').hidden && document.querySelector('#project').options.length === 2")
    browser.value("(() => { const s = document.querySelector('#project'); s.value = 'vision'; s.dispatchEvent(new Event('change')); })()")
    browser.wait("location.hash === '#/projects/vision/jobs' && document.querySelectorAll('#rows tr').length === 1")
    browser.value("document.querySelector('#rows a').click()")
    browser.wait("!document.querySelector('#cancel').hidden")
    browser.value("document.querySelector('#sign-out').click()")
    check(browser.value("document.querySelector('#facts').childElementCount") == 0, "signing out forgets what was shown")
    browser.value(sign_in % "bob")
    browser.wait("document.querySelector('#who').textContent.startsWith('bob') && document.querySelector('#facts').textContent.includes('pending')")
    check(browser.value("document.querySelector('#cancel').hidden && document.querySelector('#again').hidden"), "a reader has no buttons")
    browser.value("document.querySelector('#sign-out').click()")
    browser.complaints = [text for text in browser.complaints if "401" not in text]
    server.stop()


def check_tokens(browser, mendel, folder):
    auth = folder / "auth"
    auth.write_text(f"viewer reader sha256:{hashlib.sha256(b'secret').hexdigest()}\n")
    server = Server(mendel, folder, "closed", "0", "--concurrent-jobs", "0", "--auth-file", str(auth))
    browser.open(server.url)
    browser.wait("!document.querySelector('#sign-in').hidden && document.activeElement.id === 'token'")
    enter = "(document.querySelector('#token').value = '%s', document.querySelector('#sign-in').requestSubmit())"
    check_phone_and_colors(browser, "signing in")
    browser.value(enter % "wrong")
    browser.wait("document.querySelector('#trouble').textContent.includes('not known')")
    browser.value(enter % "secret")
    browser.wait("document.querySelectorAll('#rows tr').length > 0")
    check(browser.value("document.querySelector('#who').textContent").startswith("viewer (reader)"), "the caller is shown")
    check(browser.value("localStorage.length + document.cookie.length") == 0, "the token is in the tab's storage only")
    link = browser.value("document.querySelector('#rows a').hash")
    browser.open(server.url + link)
    browser.wait("document.querySelector('#files a[href$=log]')")
    browser.value("document.querySelector('#files a[href$=log]').click()")
    got = folder / f"mendel-{link[7:15]}.log"
    until = time.monotonic() + devtools.PATIENCE
    while not got.exists() and time.monotonic() < until:
        time.sleep(0.05)
    check(got.exists(), "a file comes with a token")
    check(not any("secret" in url for url in browser.requests), "no address contains the token")
    browser.value("document.querySelector('#sign-out').click()")
    check(browser.value("sessionStorage.length") == 0, "signing out forgets the token")
    browser.complaints = [text for text in browser.complaints if "401" not in text]
    server.stop()


def main():
    mendel = sys.argv[1]
    pictures = pathlib.Path(sys.argv[3]) if "--pictures" in sys.argv else None
    program = devtools.find_browser()
    if program is None:
        print("SKIP: no Chromium (Debian: chromium-headless-shell)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        hostile = f"{test_models.HOSTILE}.onnx"
        pathlib.Path("whole.onnx").write_bytes(test_models.whole(16))
        pathlib.Path(hostile).write_bytes(test_models.whole(12))
        pathlib.Path("cut.onnx").write_bytes(test_models.cut(16))
        server = Server(mendel, name, "server", "0", "--concurrent-jobs", "0")

        def command(*words):
            return subprocess.run([mendel, *words, "--server", server.address], capture_output=True, text=True)

        def submit(*words):
            return json.loads(command("submit", *words, "--threads", "1", "--json").stdout)["job"]["name"]

        browser = devtools.Browser(program)
        worker = None
        try:
            browser.screen(1000, 800)
            job, worker = check_live_progress(browser, server, mendel, name, submit)
            verified = command("verify", "whole.onnx", "cut.onnx", "--json")
            check(verified.returncode == 1, f"the verifier's exit code: {verified.returncode} {verified.stderr}")
            made = submit(hostile, "--budget", "1s", "--wait", "-o", "made.plan")
            browser.open(server.url + "#/" + made)
            browser.wait("!document.querySelector('#result').hidden")
            check_plan(browser, mendel, folder, folder / "made.plan")
            browser.open(server.url + "#/" + made)
            browser.wait("!document.querySelector('#result').hidden")
            check_phone_and_colors(browser, "a plan")
            verdict = browser.value("fetch('/api/jobs').then((r) => r.json()).then((l) => l.jobs.find((j) => j.spec.compare_pair).name)")
            browser.open(server.url + "#/" + verdict)
            check_regions(browser)
            check_corrected_regions(browser)
            check_predicted_times(browser)
            check_phone_and_colors(browser, "a verdict")
            check_keyboard(browser, server)
            browser.open(server.url + "#/")
            browser.wait("document.querySelectorAll('#rows tr').length === 3")
            cells = browser.value("[...document.querySelectorAll('#rows tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
            row = next(row for row in cells if made[5:13] == row[0])
            check(row[1] == hostile, f"the list names the model: {row}")
            check(row[4].endswith("x") and row[5].endswith(" s"), f"the list shows speed-up and duration: {row}")
            check_phone_and_colors(browser, "the list")
            check_actions(browser, server, submit)
            check_lists(browser, server, hostile)
            check(browser.value("document.title") != "owned", "no name was run")
            outside = [url for url in browser.requests if not url.startswith((server.url, "about:", "blob:"))]
            check(not outside, f"something else was requested: {outside}")
            if pictures:
                take_pictures(browser, server, command, submit, pictures)
            check_tokens(browser, mendel, folder)
            check_projects(browser, mendel, folder)
            server.stop()
            check(not browser.complaints, f"the browser complains: {browser.complaints}")
        finally:
            browser.close()
            for process in [server.process] + ([worker.process] if worker else []):
                process.terminate()
                process.wait()
    print("the page: good" if not failures else f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


def take_pictures(browser, server, command, submit, folder):
    """What docs/service.md shows."""
    pathlib.Path("original.onnx").write_bytes(test_models.whole(32, "features"))
    pathlib.Path("in_four_parts.onnx").write_bytes(test_models.cut(32, "features"))
    command("verify", "original.onnx", "in_four_parts.onnx")
    verdict = browser.value("fetch('/api/jobs').then((r) => r.json()).then((l) => l.jobs[0].name)")
    for seed in range(1, 5):  # on a busy machine a short search may find nothing
        optimized = submit(str(EXAMPLE), "--budget", "45s", "--seed", str(seed), "--wait")
        if browser.value(f"fetch('/api/{optimized}/result').then((r) => r.json()).then((r) => r.details.mutants.length)"):
            break
    live = submit(str(EXAMPLE), "--budget", "120s", "--seed", "9")
    folder.mkdir(exist_ok=True)
    for name, view, width, dark in [("page_live", live, 800, False), ("page_phone", live, 360, True), ("page_jobs", "jobs", 1000, False),
                                    ("page_plans", "plans", 1000, True), ("page_plan", optimized, 800, False), ("page_regions", verdict, 800, True)]:
        browser.screen(width, 300, dark)
        browser.open(server.url + "#/" + view)
        if view == live:
            browser.wait("document.querySelector('#progress').textContent.includes('Best so far')")
        else:
            browser.wait("document.querySelector('#rows tr')" if name.endswith("s") and "/" not in view else "document.querySelector('#result-body').childElementCount")
        browser.picture(folder / f"{name}.png")
    command("cancel", live)


if __name__ == "__main__":
    main()
