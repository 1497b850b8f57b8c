"""The client: its token goes to the service that was named and to nobody else."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from private_ate.cli.app import app
from private_ate.errors import ArgumentError
from private_ate.service.client import Client, ServiceError

TOKEN = "pate_canary-4711"  # noqa: S105  # of nobody


class Here(BaseHTTPRequestHandler):
    """Writes down what is asked, and answers with a redirect or with an empty list."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.heard.append(self.headers.get("Authorization"))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    do_POST = do_GET  # noqa: N815  # a name of the standard library

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def start():
    servers = []

    def started(status=200, location=""):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
        server.status, server.location, server.heard = status, location, []
        server.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever).start()
        servers.append(server)
        return server

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_error_that_names_the_address(start, status):
    other = start()
    service = start(status, f"{other.address}/v1/elsewhere")
    client = Client(service.address, TOKEN)

    for call in (client.datasets, lambda: client.plan("clinic", epsilon="0.1").ask()):
        with pytest.raises(ServiceError, match=f"sends the request on to '{other.address}"):
            call()
    assert service.heard == [f"Bearer {TOKEN}"] * 2
    assert other.heard == []


def test_an_odd_address_of_a_redirect_is_shown_without_its_odd_letters(start):
    service = start(302, "https://evil.example/\x1b[2J\u00e9")

    with pytest.raises(ServiceError, match=r"https://evil\.example") as caught:
        Client(service.address, TOKEN).datasets()
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "http://ate.example.org", "http://localhost.example.org", "http://127.0.0.1@example.org",
        "http://10.0.0.9:8470", "http://0.0.0.0:8470", "http://[fe80::1]", "http://", "https://",
        "ftp://127.0.0.1", "file:///etc/passwd", "127.0.0.1:8470", "https://a:b@example.org",
        "http://localhost\\@example.org", "http://[::1", "https://example.org/\x1b[2J", "",
    ],
)  # fmt: skip
def test_plain_http_is_for_this_computer_alone(url):
    with pytest.raises(ArgumentError, match="begins with https://") as caught:
        Client(url, TOKEN)
    assert TOKEN not in str(caught.value)

    done = CliRunner().invoke(
        app, ["ask", "--epsilon", "1", "--", url, "clinic"], env={"PRIVATE_ATE_TOKEN": TOKEN}
    )
    assert isinstance(done.exception, ArgumentError)


@pytest.mark.parametrize(
    "url",
    [
        "https://ate.example.org", "https://ate.example.org:8443/ate/", "http://127.0.0.1:8470",
        "http://127.3.2.1", "http://localhost:8470", "http://[::1]:8470", "HTTP://LOCALHOST",
    ],
)  # fmt: skip
def test_tls_and_loopback_are_taken(url):
    assert Client(url, TOKEN).url == url


def test_what_goes_to_this_computer_goes_through_no_proxy(start, monkeypatch):
    proxy, service = start(), start()
    monkeypatch.setenv("http_proxy", proxy.address)
    monkeypatch.delenv("no_proxy", raising=False)

    assert Client(service.address, TOKEN).datasets() == []
    assert proxy.heard == []
