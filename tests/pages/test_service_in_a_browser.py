"""The service's pages in a browser, by keyboard alone: declare, plan, ask, approve, read, close."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)

WIDTHS = (390, 1280)
# The path of axe-core's script, to look with other eyes as well, and a folder for pictures.
AXE = os.environ.get("PRIVATE_ATE_AXE")
SHOTS = os.environ.get("PRIVATE_ATE_SHOTS")
ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
FOCUS = """(() => { const node = document.activeElement;
  return `${node.tagName} ${node.id} ${node.textContent.trim().slice(0, 40)}`; })()"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Start the demonstration and return its address and tokens; stop it in the end."""
    folder = tmp_path_factory.mktemp("demo")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "private_ate", "serve", "demo", "--port", str(port), "--folder",
         str(folder / "service")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stdout:
        if "Ctrl-C" in line:
            break
    lines = (folder / "service" / "tokens.txt").read_text("utf-8").splitlines()
    tokens = dict(line.split() for line in lines if "pate_" in line)
    address = f"http://127.0.0.1:{port}"
    for _ in range(100):
        with suppress(OSError), urlopen(f"{address}/v1/healthz") as answer:  # noqa: S310  # ours
            assert answer.status == 200
            break
        time.sleep(0.2)
    yield address, tokens
    process.terminate()
    process.wait(timeout=60)
    process.stdout.close()


class Person:
    """Somebody with a keyboard and no mouse."""

    def __init__(self, browser, address, inspection):
        self.browser, self.address, self.inspection = browser, address, inspection
        self.looked = 0

    def open(self, path):
        visit = self.browser.open(self.address + path, 1280)
        assert visit.problems == []
        assert all(url.startswith(self.address) for url in visit.requests)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, **key)

    def tab_to(self, wanted):
        """Move the focus with the tab key until it is where it should be."""
        for _ in range(60):
            self.press(TAB)
            if wanted in self.browser.evaluate(FOCUS):
                return
        pytest.fail(f"the keyboard does not reach {wanted!r}")

    def write(self, place, text):
        self.tab_to(place)
        self.browser.evaluate("document.activeElement.select && document.activeElement.select()")
        self.browser.call("Input.insertText", text=text)

    def enter(self, wanted, title):
        """Press enter on something and wait for the page that follows."""
        self.tab_to(wanted)
        self.press(ENTER)
        self.wait_for(title)

    def wait_for(self, text, seconds=90):
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            with suppress(AssertionError):  # between two pages nothing can be asked
                if text in self.browser.evaluate("document.body.innerText"):
                    return
            time.sleep(0.1)
        pytest.fail(f"no page says {text!r}")

    def inspect(self, name, *, axe=True):
        """Look at the page in both widths; axe waits for timers, which a sandbox has not."""
        for width in WIDTHS:
            self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                              deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
            time.sleep(0.1)
            assert self.browser.evaluate(self.inspection) == [], (name, width)
            if AXE and axe:
                self.browser.evaluate(Path(AXE).read_text("utf-8") + ";0")
                found = self.browser.evaluate(
                    "axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, "
                    "v.nodes.map(n => n.html)])))"
                )
                assert json.loads(found) == [], (name, width)
            if SHOTS:
                self.browser.screenshot(Path(SHOTS) / f"{name}-{width}.png")
            self.looked += 1

    def come_in(self, token):
        self.browser.call("Network.clearBrowserCookies")
        self.open("/login")
        self.inspect("login")
        self.write("INPUT token", token)
        self.press(ENTER)
        self.wait_for("Leave (")


def test_the_browser_goes_from_the_door_to_a_release_by_keyboard_alone(browser, inspection, demo):
    address, tokens = demo
    person = Person(browser, address, inspection)
    person.come_in(tokens["analyst"])
    person.inspect("catalogue")
    person.enter("A  clinic", "Plan a question")
    person.inspect("dataset")
    person.write("INPUT epsilon", "0.3")
    person.write("INPUT half_width", "1")
    person.enter("Show the plan", "Your plan")
    person.inspect("plan")
    assert "such answers" in browser.evaluate("document.body.innerText")
    person.enter("Ask, and spend", "A request")
    person.inspect("waiting", axe=False)
    person.wait_for("Read the release")  # the page looks again by itself
    person.inspect("answered")
    person.enter("Read the release", "Effect of drug on pressure_drop")
    person.inspect("release", axe=False)
    ask_for_subgroups(person)
    person.open("/requests")
    person.inspect("requests")

    person.come_in(tokens["curator"])
    curate(person)

    person.come_in(tokens["auditor"])
    person.open("/history")
    assert "Both histories verify" in browser.evaluate("document.body.innerText")
    person.inspect("history")
    person.open("/datasets/clinic")
    assert "This data set is closed" in browser.evaluate("document.body.innerText")
    assert person.looked >= 36


def ask_for_subgroups(person):
    person.open("/datasets/clinic")
    person.write("INPUT epsilon", "0.9")
    person.enter("SUMMARY  More choices", "Covariates to adjust for")
    person.write("INPUT by", "smoker")
    person.inspect("choices")
    person.enter("Show the plan", "A curator will look at it first")
    person.inspect("subgroups")
    person.enter("Ask, and spend", "waits for a curator")


def curate(person):
    person.open("/queue")
    person.inspect("queue")
    person.enter("Approve this plan", "Nothing waits")
    person.open("/manage")
    person.inspect("manage")
    person.enter("A  Policy", "Policy of clinic")
    person.inspect("policy")
    person.write("INPUT epsilon_per_request", "magic")
    person.enter("Replace the policy", "That did not work")
    person.inspect("error", axe=False)
    person.open("/manage")
    person.enter("BUTTON  Close", "closed")
    person.open("/tokens")
    person.inspect("tokens")
    person.write("INPUT owner", "erin")
    person.enter("Issue it", "Copy it now")
    person.inspect("issued")
