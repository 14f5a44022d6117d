#!/usr/bin/env python3
"""The pages of `mendel explain --html` and `mendel verify --html` in a headless Chromium. usage: browser_test.py MENDEL [--pictures FOLDER]

Prints how long the page of a graph of 1,500 nodes takes to open. --pictures keeps pictures of the pages. Without a browser the test is
skipped (exit code 77).
"""
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "server" / "web"))
import devtools  # noqa: E402
import test_models  # noqa: E402
from test_models import field, node, value_info  # noqa: E402

NODES = 1500
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what)


def model(nodes, inputs, output, shape):
    graph = b"".join(nodes) + field(2, "net") + b"".join(field(11, value_info(name, extents)) for name, extents in inputs)
    return field(1, 8) + field(7, graph + field(12, value_info(output, shape))) + field(8, field(2, 13))


def chain():
    """Two products of matrices and a vector: one order costs 256 times as much as the other."""
    nodes = [node("MatMul", ["a", "b"], ["ab"]), node("MatMul", ["ab", "v"], ["abv"]), node("Relu", ["abv"], ["y"])]
    return model(nodes, [("a", [512, 512]), ("b", [512, 512]), ("v", [512, 1])], "y", [512, 1])


def ladder():
    """Many small nodes in two strands that meet at every step."""
    nodes, left, right = [], "x", "x"
    for step in range(NODES // 3):
        nodes += [node("Relu", [left], [f"l{step}"]), node("Neg", [right], [f"r{step}"]), node("Add", [f"l{step}", f"r{step}"], [f"s{step}"])]
        left, right = f"s{step}", f"l{step}"
    return model(nodes, [("x", [1, 64])], left, [1, 64])


def check_screens(browser, page, pictures):
    for width, dark in [(360, False), (360, True), (1000, False), (1000, True)]:
        browser.screen(width, 800, dark)
        over = browser.value("document.documentElement.scrollWidth - innerWidth")
        check(over <= 0, f"{page}: {over} pixels too wide on a screen of {width}")
        if pictures:
            browser.picture(pictures / f"{page}_{width}_{'dark' if dark else 'light'}.png")


def check_algebra(browser, picture):
    """A click on a colored node of one of the two graphs shows its mutant."""
    browser.value("location.hash = ''; 0")
    clicked = browser.value(f"""(() => {{ const link = document.querySelectorAll('figure')[{picture}].querySelector('svg a');
      if (link) link.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true}})); return Boolean(link); }})()""")
    check(clicked, f"picture {picture} has a colored node to click")
    shown = browser.value("(() => { const mutant = document.querySelector('article:target'); return mutant ? mutant.textContent : ''; })()")
    check("= " in shown and "MatMul" in shown and "replaced" in shown, f"a click in picture {picture} shows the algebra: {shown!r}")


def main():
    mendel = str(pathlib.Path(sys.argv[1]).resolve())
    pictures = pathlib.Path(sys.argv[3]).resolve() if sys.argv[2:3] == ["--pictures"] else None
    program = devtools.find_browser()
    if not program:
        print("SKIP: no Chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        run(mendel, devtools.Browser(program), pathlib.Path(folder), pictures)
    print("the pages: good" if not failures else f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


def run(mendel, browser, folder, pictures):
    def command(*arguments, status=0):
        done = subprocess.run([mendel, *arguments], capture_output=True, text=True, cwd=folder)
        check(done.returncode == status, f"mendel {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")

    for name, bytes_ in [("chain", chain()), ("ladder", ladder()), ("whole", test_models.whole(32)), ("cut", test_models.cut(32))]:
        (folder / f"{name}.onnx").write_bytes(bytes_)
    if pictures:
        pictures.mkdir(exist_ok=True)
    try:
        command("optimize", "chain.onnx", "-o", "chain.plan", "--budget", "5s", "--threads", "1", "--cache", "c.sqlite")
        command("explain", "chain.plan", "--html", "chain.html")
        browser.open(f"file://{folder}/chain.html")
        check(browser.value("document.title") != "owned", "no name of the plan was run")
        check_algebra(browser, 0)
        check_algebra(browser, 1)
        check_screens(browser, "plan", pictures)
        command("verify", "whole.onnx", "cut.onnx", "--html", "verdict.html", status=1)
        browser.open(f"file://{folder}/verdict.html")
        check(browser.value("document.title") != "owned", "no name of the verdict was run")
        check(browser.value("document.querySelectorAll('rect.wrong').length") > 0, "the wrong boxes are drawn")
        check_screens(browser, "verdict", pictures)
        command("optimize", "ladder.onnx", "-o", "ladder.plan", "--budget", "0s", "--threads", "1", "--cache", "c.sqlite")
        command("explain", "ladder.plan", "--no-times", "--html", "ladder.html")
        begin = time.monotonic()
        browser.open(f"file://{folder}/ladder.html")
        browser.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        print(f"a graph of {NODES} nodes: {(folder / 'ladder.html').stat().st_size / 1e6:.1f} MB, opened in {time.monotonic() - begin:.2f} s")
        drawn = browser.value("document.querySelectorAll('figure')[0].querySelectorAll('g.node').length")
        check(drawn == NODES + 1, f"{drawn} nodes are drawn")
        check(browser.value("document.title") != "owned", "no name was run")
        check(not [url for url in browser.requests if not url.startswith(("file:", "about:"))], f"requests: {browser.requests}")
        check(not browser.complaints, f"the browser complains: {browser.complaints}")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
