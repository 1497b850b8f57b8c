"""A page of another origin in a browser whose user a sign-in proxy knows: it changes nothing."""

import sys
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

import uvicorn
from house_people import CAROL, furnish

from private_ate.service.web.app import make_app
from private_ate.service.web.authentication import Proxy, WebSettings

SENT = "new Promise(done => setTimeout(done, 300))"
# What a page may send elsewhere without asking first: a body without a kind, and a form.
BLOB = """fetch({url!r}, {{method: "POST", mode: "no-cors", credentials: "include",
  body: new Blob(['{body}'])}}).then(() => "sent", () => "not sent")"""
FORM = """(() => {{ const form = document.createElement("form");
  form.method = "POST"; form.action = {url!r}; form.target = "frame";
  const frame = document.createElement("iframe"); frame.name = "frame";
  document.body.append(frame, form); form.submit(); }})()"""


class SignInProxy(BaseHTTPRequestHandler):
    """Hands every request on as carol's, as a proxy does that knows her by a cookie."""

    port = 0

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = {**self.headers, "X-Private-Ate-User": "carol", "X-Private-Ate-Secret": "s3cret"}
        with closing(HTTPConnection("127.0.0.1", self.port)) as behind:
            behind.request(self.command, self.path, body, sent)
            answer = behind.getresponse()
            self.answer(answer.status, answer.read(), answer.headers["Content-Type"])

    do_POST = do_GET  # noqa: N815  # a name of the standard library

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


class OtherSite(SignInProxy):
    """A page of somebody else."""

    def do_GET(self):
        self.answer(200, b"<!DOCTYPE html><title>other</title><body>", "text/html")


def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture
def two_origins(tmp_path):
    """Start the service behind a proxy, and another site; yield both addresses and the house."""
    house = furnish(tmp_path / "service.db", tmp_path)
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), kind) for kind in (SignInProxy, OtherSite)]
    settings = WebSettings(address(servers[0]), Proxy(("127.0.0.1",), "s3cret"))
    service = uvicorn.Server(
        uvicorn.Config(make_app(house.service, settings), port=0, log_level="error")
    )
    threads = [threading.Thread(target=one.serve_forever) for one in servers]
    threads.append(threading.Thread(target=service.run))
    for thread in threads:
        thread.start()
    while not service.started:
        time.sleep(0.05)
    SignInProxy.port = service.servers[0].sockets[0].getsockname()[1]
    yield address(servers[0]), address(servers[1]), house
    service.should_exit = True
    for one in servers:
        one.shutdown()
        one.server_close()
    for thread in threads:
        thread.join()
    house.store.close()


def test_a_page_of_another_origin_neither_closes_nor_approves(browser, two_origins):
    ours, other, house = two_origins
    row = house.ask(epsilon="0.6")
    close = f"{ours}/v1/datasets/clinic/close"
    plan = f'{{"plan": "{row.plan}"}}'
    approve = BLOB.format(url=f"{ours}/v1/requests/{row.id}/approve", body=plan)

    browser.open(f"{other}/", 1280)
    assert browser.evaluate(BLOB.format(url=close, body="{}")) == "sent"
    assert browser.evaluate(approve) == "sent"
    browser.evaluate(FORM.format(url=close))
    browser.evaluate(SENT)
    dataset, _ = house.service.dataset("clinic")
    assert not dataset.closed
    assert house.service.show(CAROL, row.id).state == "waiting"

    browser.open(f"{ours}/login", 1280)  # the same from our own page
    said = f'fetch("{close}", {{method: "POST"}}).then(answer => answer.status)'
    assert browser.evaluate(said) == 200
    assert house.service.dataset("clinic")[0].closed
