"""Reads and durable posts a second of the service on loopback, and the time of wrong tokens.

python benchmarks/service.py [--seconds 5]: one web process on SQLite, clients as threads of this
one. Figures share the machine with whatever else runs, so the load average is printed beside.
"""

from __future__ import annotations

import argparse
import json
import os
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
from private_ate.service.place import open_place, read_place
from private_ate.service.policy import Policy
from private_ate.service.running import furnish_demo
from private_ate.service.store.catalogue import set_policy
from private_ate.service.store.people import read_token


def load(port, seconds, threads, call):
    """Call over kept connections for a while; return seconds of each call."""
    times: list[float] = []
    stop = time.monotonic() + seconds

    def work(number):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        turn = 0
        while time.monotonic() < stop and turn < 20_000:
            begun = time.perf_counter()
            call(connection, f"{number}-{turn}")
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


def token_times(folder, token, count=4000):
    """Compare the times of a wrong secret and of an unknown id."""
    wrong = token[:-4] + "AAAA"
    unknown = "pate_000000000000_" + "A" * 43
    times = {wrong: [], unknown: []}
    with open_place(read_place(folder)) as (store, desk), store.snapshot() as execute:
        for turn in range(2 * count):
            shown = (wrong, unknown)[turn % 2]
            begun = time.perf_counter_ns()
            with suppress(PrivateAteError):
                read_token(execute, shown, desk.clock())
            times[shown].append(time.perf_counter_ns() - begun)
    first, second = (np.array(each[200:]) for each in times.values())
    found = ks_2samp(first, second)
    print(
        f"wrong tokens: median {np.median(first) / 1000:.1f} µs with a known id, "
        f"{np.median(second) / 1000:.1f} µs with none; KS distance {found.statistic:.3f}"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "service"
        token = furnish_demo(folder, port)["analyst"]
        with open_place(read_place(folder)) as (store, _), store.transaction() as execute:
            set_policy(execute, "clinic", Policy(epsilon_per_month="1000"), "bench")
        told = (folder / "service.toml").read_text("utf-8")
        (folder / "service.toml").write_text(told.replace("rate = 200", "rate = 1e9"), "utf-8")
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
            tell("durable posts", load(port, seconds, 4, post), seconds, "≥ 50")
        finally:
            web.terminate()
            web.wait(timeout=30)
        token_times(folder, token)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
