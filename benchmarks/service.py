"""Reads and durable posts a second of the service on loopback, and the time of wrong tokens.

python benchmarks/service.py [--seconds 5]: one web process on SQLite, clients as threads of this
one. Figures share the machine with whatever else runs, so the load average is printed beside.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from scipy.stats import ks_2samp

from private_ate.errors import PrivateAteError
from private_ate.ledger.accounts import TABLES
from private_ate.ledger.stores import SqliteStore
from private_ate.service.policy import Policy
from private_ate.service.processes import create_demo, open_service, read_config
from private_ate.service.store.catalogue import set_policy
from private_ate.service.store.users import issue_token, read_token

LOOSE = Policy(epsilon_per_month="1000", epsilon_at_least="0.000001", requests_per_day=10**6)


def load(port, seconds, threads, call):
    """Call over kept connections for a while; return seconds of each call."""
    times: list[float] = []
    stop = time.monotonic() + seconds

    def work(number):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        turn = 0
        while time.monotonic() < stop and turn < 20_000:
            begun = time.perf_counter()
            call(connection, f"{threads}-{number}-{turn}")
            times.append(time.perf_counter() - begun)
            turn += 1
        connection.close()

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return np.array(times)


def tell(what, times, seconds, wanted):
    rate, slow = times.size / seconds, 1000 * np.quantile(times, 0.99)
    print(f"{what}: {rate:.0f} a second (wanted {wanted}), p99 {slow:.0f} ms")


def bare_inserts(folder, seconds):
    """Return the times of one durable insert after another, with the ledger's own settings."""
    times = []
    store = SqliteStore(folder / "bare.db")
    store.initialize((*TABLES, "CREATE TABLE IF NOT EXISTS bare (text TEXT)"))
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        begun = time.perf_counter()
        with store.transaction() as execute:
            execute("INSERT INTO bare VALUES (?)", ("x" * 1500,))
        times.append(time.perf_counter() - begun)
    store.close()
    return np.array(times)


def many_tokens(folder, count=300):
    """Issue tokens and return their ids: one id over and over would be quick for being the same."""
    with open_service(read_config(folder)) as (store, service), store.transaction() as execute:
        made = [issue_token(execute, "alice", "bench", service.clock()) for _ in range(count)]
    return [token.split("_")[1] for token in made]


def wrong_tokens(ids, count):
    """Return pairs of wrong tokens: with a known id, and with an id that nobody has."""
    return [
        (f"pate_{secrets.choice(ids)}_{secrets.token_urlsafe(32)}",
         f"pate_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}")
        for _ in range(count)
    ]  # fmt: skip


def compare_times(what, pairs, call):
    """Compare the times of calls with either kind of wrong token, taken in turns."""
    times = []
    for pair in pairs:
        row = []
        for shown in pair if len(times) % 2 else pair[::-1]:
            begun = time.perf_counter_ns()
            call(shown)
            row.append(time.perf_counter_ns() - begun)
        times.append(row if len(times) % 2 else row[::-1])
    first, second = np.array(times[100:]).T
    found = ks_2samp(first, second)
    print(
        f"wrong tokens {what}, {len(first)} each: median {np.median(first) / 1000:.2f} µs with a "
        f"known id, {np.median(second) / 1000:.2f} µs with none; spread (quartiles) "
        f"{np.subtract(*np.quantile(first, [0.75, 0.25])) / 1000:.2f} µs; "
        f"KS distance {found.statistic:.3f}, p = {found.pvalue:.2g}"
    )


def token_times(folder, ids, count=8000):
    """Compare a wrong secret with an unknown id in this process, where nothing else adds noise."""
    with open_service(read_config(folder)) as (store, service), store.snapshot() as execute:

        def look_up(shown):
            with suppress(PrivateAteError):
                read_token(execute, shown, service.clock())

        compare_times("in process", wrong_tokens(ids, count), look_up)


def token_times_over_http(port, ids, count=1500):
    """Compare them as a stranger could, who has five tries a second at most."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(shown):
        connection.request("GET", "/v1/datasets", headers={"Authorization": f"Bearer {shown}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (401, 429), answer.status

    compare_times("over HTTP", wrong_tokens(ids, count), ask)
    connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "service"
        token = create_demo(folder, port)["analyst"]
        with open_service(read_config(folder)) as (store, _), store.transaction() as execute:
            set_policy(execute, "clinic", LOOSE, "bench")
        ids = many_tokens(folder)
        told = (folder / "service.toml").read_text("utf-8")
        for limit in ("rate = 200", "under_way = 10", "a_day = 100"):
            told = told.replace(limit, limit.partition("=")[0] + "= 1000000000")
        (folder / "service.toml").write_text(told, "utf-8")
        web = subprocess.Popen([sys.executable, "-m", "private_ate", "serve", "web", str(folder)])
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def read(connection, _):
            connection.request("GET", "/v1/datasets", headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status

        def post(connection, key):
            body = json.dumps({"dataset": "clinic", "epsilon": "0.000001"})
            sent = {**headers, "Idempotency-Key": key}
            connection.request("POST", "/v1/requests", body, sent)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 202, answer.status

        try:
            for _ in range(200):
                with suppress(OSError):
                    read(HTTPConnection("127.0.0.1", port), "")
                    break
                time.sleep(0.1)
            load(port, 1, 2, read)
            tell("reads", load(port, seconds, 8, read), seconds, "≥ 300, p99 < 100 ms")
            bare = bare_inserts(folder, seconds / 2)
            posts = load(port, seconds, 8, post)
            bare = np.concatenate([bare, bare_inserts(folder, seconds / 2)])
            tell("durable posts, 8 clients", posts, seconds, "≥ 50")
            tell("bare durable inserts, one after another", bare, seconds, "to compare with")
            print(f"posts for each bare insert: {posts.size / bare.size:.2f}")
            token_times_over_http(port, ids)
            tell("durable posts, one client", load(port, seconds, 1, post), seconds, "any")
        finally:
            web.terminate()
            web.wait(timeout=30)
        token_times(folder, ids)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
