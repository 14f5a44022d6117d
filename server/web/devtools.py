"""A headless Chromium, driven over a pipe by its DevTools protocol; only the standard library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 120  # seconds for anything, on the slowest machine


def find_browser():
    """Path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page. Collects what the page complains about and requests."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="mendel-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "browser", program, "--headless", "--no-sandbox",
             "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--force-color-profile=srgb",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.complaints = []
        self.requests = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _next(self):
        """The next message."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, until - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method, facts = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(facts["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.complaints.append(f"{facts['entry']['text']} {facts['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self.last_id:
                self._note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def value(self, expression):
        """What a JavaScript expression (or promise) is."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {json.dumps(result['exceptionDetails'])[:500]}")
        return result["result"].get("value")

    def wait(self, expression):
        """Waits until the expression is true."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.value(f"Boolean({expression})"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"never true: {expression}; the page says: {self.value('document.body.innerText')}")

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url.split('#')[0])}) && document.readyState === 'complete'")

    def screen(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def key(self, key):
        facts = {"key": key, "code": key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}[key]}
        if key == "Enter":
            facts["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **facts)
        self.call("Input.dispatchKeyEvent", type="keyUp", **facts)

    def picture(self, path):
        """The whole page as PNG."""
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("innerWidth")
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
