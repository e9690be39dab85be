# SPDX-License-Identifier: BSD-3-Clause
"""Drive the page as an operator would. PICTURES=DIR: keep pictures of the tour there."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HERE = pathlib.Path.cwd()
TOKEN = "a-token-of-the-test-0123456789"
MARKUP = "<img src=x onerror=window.hacked=1>"
PICTURES = os.environ.get("PICTURES")
IDLE = 194


def check(ok, what):
    if not ok:
        sys.exit(f"page: {what}")
    print(f"ok {what}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def policy():
    exports = ["db", "backup", "batch", "web", "one", MARKUP] + [f"idle{i}" for i in range(IDLE)]
    lines = ['resources: [{name: ssd, back: "model:ssd+memory:512M", depth: 8}]', "exports:"]
    lines += [f"  - {{name: {json.dumps(e)}, resource: ssd, offset: {i} MiB, size: 1 MiB}}" for i, e in enumerate(exports)]
    lines += ["tenants:", '  - {name: db, weight: 4, slo: "p99 < 4ms", match: {export: db}}',
              "  - {name: backup, weight: 40, match: {export: backup}}",
              "  - {name: batch, max: 2k iops, match: {export: batch}}", "  - {name: web, match: {export: web}}",
              "  - {name: team, max: 20 iops, children: [{name: one, match: {export: one}}]}",
              f"  - {{name: {json.dumps(MARKUP)}, match: {{export: {json.dumps(MARKUP)}}}}}"]
    lines += [f"  - {{name: idle{i}, match: {{export: idle{i}}}}}" for i in range(IDLE)]
    return "\n".join(lines) + "\n"


class Rig:
    """A gateway, its load and a browser."""

    def __init__(self):
        self.port = free_port()
        (HERE / "weir.yaml").write_text(policy())
        (HERE / "token").write_text(TOKEN + "\n")
        (HERE / "token").chmod(0o600)
        self.gateway = self.load = None
        self.start()
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
                         "--window-size=1280,860", "--force-device-scale-factor=1"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        os.environ["HOME"] = str(HERE)
        self.browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.browser.set_script_timeout(30)

    def start(self):
        (HERE / "pid").unlink(missing_ok=True)
        self.gateway = subprocess.Popen(
            ["weir", "serve", "weir.yaml", "--listen", f"unix:{HERE}/nbd.sock", "--api", f"unix:{HERE}/api.sock,tcp:127.0.0.1:{self.port}",
             "--token-file", "token", "--state", f"{HERE}/state", "--pidfile", "pid"], stderr=open("gateway.log", "a"))
        self.until(lambda: (HERE / "pid").exists() and (HERE / "pid").read_text(), "the gateway is ready")
        uri = f"nbd+unix:///%s?socket={HERE}/nbd.sock"
        self.load = subprocess.Popen(["nice", "weir", "load", "-t", "300s", "--depth", "16"] + [f"{n}={uri % n}" for n in ("db", "backup", "batch", "web", "one")],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop_gateway(self):
        self.load.kill()
        self.load.wait()
        self.gateway.send_signal(signal.SIGTERM)
        self.gateway.wait(20)

    def end(self):
        for child in (self.load, self.gateway):
            if child and child.poll() is None:
                child.kill()
        try:
            self.browser.quit()
        except (AttributeError, WebDriverException):
            pass

    def until(self, ready, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if ready():
                    return
            except WebDriverException:
                pass
            time.sleep(0.05)
        if PICTURES and hasattr(self, "browser"):
            self.browser.save_screenshot(f"{PICTURES}/failed.png")
        sys.exit(f"page: not within {seconds} s: {what}\n{self.text()[:2000] if hasattr(self, 'browser') else ''}")

    # ---- the page

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        return self.find(selector).text

    def go(self, where):
        self.browser.execute_script("location.hash = arguments[0]", f"#/{where}")

    def press(self, selector):
        """Click what may be drawn anew at any time."""
        def once():
            self.find(selector).click()
            return True

        self.until(once, f"{selector} can be clicked")

    def click(self, text, within="main"):
        for button in self.find(within).find_elements(By.CSS_SELECTOR, "button, a"):
            if button.text == text:
                button.click()
                return
        sys.exit(f"page: there is no button '{text}' in {within}: {self.text(within)[:500]}")

    def fill(self, selector, text):
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)

    def picture(self, name):
        if PICTURES:
            self.browser.save_screenshot(f"{PICTURES}/{name}.png")

    def api(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.load(reply)

    def rate(self, path):
        """Measured by two looks at the API, not by the page."""
        looks = []
        for _ in range(2):
            s = self.api("/v1/status?tenant=" + path)
            looks.append((s["now_s"], next(t["served"] for t in s["tenants"] if t["path"] == path)))
            time.sleep(0.5)
        return (looks[1][1] - looks[0][1]) / (looks[1][0] - looks[0][0])


def files_and_headers(rig):
    packed = plain = 0
    for path in ("/", "/page.css", "/page.js"):
        for coding in ("gzip", "identity"):
            request = urllib.request.Request(f"http://127.0.0.1:{rig.port}{path}", headers={"Accept-Encoding": coding})
            with urllib.request.urlopen(request) as reply:
                body = reply.read()
                check(reply.headers["Content-Encoding"] == ("gzip" if coding == "gzip" else None) and
                      "default-src 'none'" in reply.headers["Content-Security-Policy"], f"{path} {coding}: headers")
            if coding == "gzip":
                packed += len(body)
            else:
                plain += len(body)
                check(not re.search(rb"https?://(?!www\.w3\.org/)", body) or path == "/page.js", f"{path} names no other host")
    check(packed <= 150_000, f"{packed} bytes are transferred, {plain} unpacked")


def log_in(rig):
    rig.browser.get(f"http://127.0.0.1:{rig.port}/")
    rig.until(lambda: "token" in rig.text("dialog"), "the page asks for the token")
    rig.find("dialog input").send_keys("wrong-token-0123456789", Keys.ENTER)
    rig.until(lambda: "not right" in rig.text("dialog"), "a wrong token is refused")
    rig.find("dialog input").send_keys(TOKEN, Keys.ENTER)
    rig.until(lambda: "connected" == rig.text(".state"), "the page is connected")
    check(TOKEN not in rig.browser.current_url, "the token is not in the URL")


def every_view(rig):
    rig.until(lambda: "its own max" in rig.text(".rows"), "the cause of a tenant that waits")
    check(MARKUP in rig.text(".rows") or rig.browser.execute_script("return window.hacked") is None, "markup does nothing")
    rig.picture("now")
    rows = len(rig.browser.find_elements(By.CSS_SELECTOR, ".grid-row"))
    check(rows < 60, f"{rows} of 200 rows are in the document")
    rig.fill("input[type=search]", "<img")
    rig.until(lambda: rig.text(".rows .name") == MARKUP, "a name full of markup stays text")
    check(rig.browser.execute_script("return window.hacked === undefined && document.querySelectorAll('.rows img').length === 0"), "and is not run")
    for view, word in (("resources", "capacity"), ("volumes", "no volumes"), ("plan", "No plan is in force"), ("cluster", "names no peers"), ("policy", "version 1")):
        rig.go(view)
        rig.until(lambda word=word: word in rig.text("main"), f"the view {view}")
        rig.picture(view)


def find_and_fix(rig):
    """From the first view: the victim, the cause, the cap, its effect; and back. Counts clicks."""
    clicks = 0
    rig.go("")
    rig.until(lambda: rig.text(".grid-row[data-path=db] .badge").startswith("missed") or rig.rate("db") > 0, "db's slo")
    before = rig.rate("db")
    rig.press(".grid-row[data-path=db]")
    clicks += 1
    rig.until(lambda: "while other tenants go first" in rig.text(".why"), "why db waits")
    rig.until(lambda: rig.text(".tenant table tbody tr td") == "backup", "the tenant that was served meanwhile")
    rig.until(lambda: len(rig.browser.find_elements(By.CSS_SELECTOR, ".chart canvas")) == 3, "the charts")
    rig.picture("why")
    rig.press(".tenant table tbody tr a")
    clicks += 1
    rig.until(lambda: rig.text("h2") == "backup", "backup's page")
    rig.fill("#knob-max", "not a rate")
    rig.find("#knob-max").send_keys(Keys.ENTER)
    rig.until(lambda: "not a rate" in rig.text(".problem"), "an error is shown as one")
    rig.fill("#knob-max", "1k iops")
    rig.find("#knob-max").send_keys(Keys.ENTER)
    clicks += 1
    rig.until(lambda: "backup.max is 1k iops" in rig.text(".toasts"), "the cap is set")
    rig.until(lambda: rig.rate("backup") < 1200, "and holds")
    rig.until(lambda: rig.rate("db") > 1.3 * before, "the victim recovers")
    rig.picture("capped")
    check(clicks <= 8, f"{clicks} clicks")
    rig.click("Undo", ".toasts")
    rig.until(lambda: "is as in the policy again" in rig.text(".toasts"), "the cap is taken back")
    rig.until(lambda: rig.rate("backup") > 2000, "and its effect")


def edit_policy(rig):
    rig.go("policy")
    rig.until(lambda: "version" in rig.text("main .muted"), "the policy")
    area = rig.find("textarea")
    text = area.get_attribute("value")

    def type_policy(new):
        rig.browser.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", area, new)

    type_policy(text.replace("max: 2k iops", "max: 2k iobs"))
    rig.until(lambda: "iobs" in rig.text(".verdict") and not rig.find("button.primary").is_enabled(), "a wrong policy cannot be applied")
    type_policy(text.replace("max: 2k iops", "max: 500 iops"))
    rig.until(lambda: "can be put in force" in rig.text(".verdict"), "a right one is checked as it is typed")
    check("max: 500 iops" in rig.text(".diff .add"), "the difference is shown")
    rig.picture("edit")
    rig.click("Apply")
    rig.until(lambda: "The policy is applied" in rig.text(".toasts"), "it is applied")
    rig.until(lambda: rig.rate("batch") < 700, "it takes effect")
    rig.click("Roll back")
    rig.until(lambda: "rolled back" in rig.text(".toasts"), "it is rolled back")
    rig.until(lambda: rig.rate("batch") > 1200, "with effect")


def exact_knobs(rig):
    """The field of a knob has what is in force, not rounded, so that sending it back changes nothing."""
    for value in ("{all: 12345 iops, reads: [9999 iops, 100000001 B/s]}", "[12345 iops, 1.5 MiB/s]", "1234567 iops"):
        request = urllib.request.Request(f"http://127.0.0.1:{rig.port}/v1/set/backup.max", method="PUT", data=value.encode(),
                                         headers={"Authorization": f"Bearer {TOKEN}"})
        urllib.request.urlopen(request).close()
        was = rig.api("/v1/status?tenant=backup")["tenants"][0]["max"]
        rig.go("")
        rig.go("tenant/backup")
        rig.until(lambda value=value: rig.find("#knob-max").get_attribute("value") == value, f"the field says {value}")
        rig.find("#knob-max").send_keys(Keys.ENTER)
        rig.until(lambda value=value: f"backup.max is {value}" in rig.text(".toasts"), "and the gateway takes it back")
        check(rig.api("/v1/status?tenant=backup")["tenants"][0]["max"] == was, "unchanged")


def group(rig):
    """The tenants of a group are not its neighbours."""
    rig.go("tenant/team")
    rig.until(lambda: rig.text("h2") == "team" and "backup" in rig.text(".tenant table"), "a group's neighbours")
    check("team/one" not in rig.text(".tenant table") and rig.rate("team") > 0, "are not its own tenants")


def luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(rig):
    """WCAG 2.1 AA: 4.5 for text, 3 for what is drawn, in both themes, also while the gateway is gone."""
    text = [(f, b) for f in ("ink", "muted", "accent", "good", "bad") for b in ("paper", "card", "hover")] + [("accent-ink", "accent")]
    drawn = [(f, b) for f in ("cause-max", "cause-above", "cause-tokens", "cause-window", "cause-turn", "device", "warm", "cool", "muted") for b in ("card", "hover")]
    for scheme in ("light", "dark"):
        rig.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        for pairs, least in ((text, 4.5), (drawn, 3)):
            for pair in pairs:
                front, back = (luminance(rig.browser.execute_script(
                    "return getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0]).trim()", name)) for name in pair)
                ratio = (max(front, back) + 0.05) / (min(front, back) + 0.05)
                if ratio < least:
                    check(False, f"{scheme}: {pair[0]} on {pair[1]} has {ratio:.2f}, less than {least}")
    faded = rig.browser.execute_script("document.body.classList.add('lost'); return getComputedStyle(document.querySelector('main')).opacity")
    check(faded == "1", "contrasts are those of WCAG AA")


def keyboard(rig):
    rig.go("")
    rig.until(lambda: rig.find(".grid"), "the table")
    rig.browser.execute_script("document.activeElement.blur()")
    rig.find("body").send_keys("/")
    rig.until(lambda: rig.browser.switch_to.active_element.get_attribute("type") == "search", "/ goes to the search box")
    rig.browser.execute_script("document.querySelector('.grid').focus()")
    grid = rig.find(".grid")
    grid.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    rig.until(lambda: rig.find(".grid-row.selected"), "arrows select")
    grid.send_keys(Keys.ENTER)
    rig.until(lambda: rig.find(".tenant h2"), "Enter opens")
    rig.find("body").send_keys(Keys.ESCAPE)
    rig.until(lambda: rig.find(".grid"), "Escape closes")


def restart(rig):
    rig.stop_gateway()
    rig.until(lambda: "not connected" in rig.text(".state"), "a gateway that is gone is said")
    rig.start()
    rig.until(lambda: rig.text(".state") == "connected", "the page connects again")
    rig.go("tenant/db")
    rig.until(lambda: len(rig.api("/v1/history?tenant=db&span=300s")["points"]) > 1, "the history survived")


def only_own_host(rig):
    asked = set()
    for entry in rig.browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        url = message.get("params", {}).get("request", {}).get("url", "")
        if message["method"] == "Network.requestWillBeSent" and not url.startswith(("data:", "about:", "chrome:")):
            asked.add(re.match(r"\w+://[^/]*", url).group(0))
    check(asked == {f"http://127.0.0.1:{rig.port}"}, f"requests go to {asked}")
    bad = [e["message"] for e in rig.browser.get_log("browser") if e["level"] == "SEVERE" and
           not re.search(r"status of (400|401|404)|ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE|ERR_SOCKET", e["message"])]
    check(not bad, f"errors of the browser: {bad}")


def looks(rig):
    """Dark and phone, for the pictures."""
    for name, width, scheme in (("dark", 1280, "dark"), ("phone", 390, "light")):
        rig.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": name == "phone"})
        rig.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        rig.go("")
        rig.until(lambda: rig.find(".grid-row .sharebar"), f"{name}: the table")
        wide = rig.browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 0, f"{name}: nothing is wider than the window ({wide})")
        rig.picture(name)
        rig.go("tenant/db")
        rig.until(lambda: rig.find(".chart canvas"), f"{name}: the charts")
        wide = rig.browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 0, f"{name}: a tenant's page fits ({wide})")
        rig.picture(f"{name}-why")


rig = Rig()
try:
    files_and_headers(rig)
    log_in(rig)
    every_view(rig)
    find_and_fix(rig)
    edit_policy(rig)
    exact_knobs(rig)
    group(rig)
    contrast(rig)
    keyboard(rig)
    restart(rig)
    looks(rig)
    only_own_host(rig)
finally:
    rig.end()
