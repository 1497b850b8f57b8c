"""The processes of a service: web, worker, both for a demonstration, and their systemd units."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from private_ate.arguments import real_number
from private_ate.errors import ArgumentError
from private_ate.service.config import (
    Config,
    add_file,
    create_service,
    open_service,
    read_config,
    worker_settings,
    write_secret,
)
from private_ate.service.operations import Service
from private_ate.service.policy import Policy
from private_ate.service.store.events import now
from private_ate.service.store.users import add_user, find_user, issue_token

_DEMO_EPSILON: Final = "3"
_DEMO_WORKER: Final = """import signal, sys
from pathlib import Path
from private_ate.service.worker.job import end_with_parent
from private_ate.service.config import read_config
from private_ate.service.processes import run_work
end_with_parent(int(sys.argv[1]), signal.SIGTERM)
run_work(read_config(Path(sys.argv[2])))
"""
_UNIT: Final = """[Unit]
Description=private-ate: {what}
After=network.target

[Service]
User={user}
Group=private-ate
ExecStart={python} -m private_ate serve {command} {folder}
Restart=always
RestartSec=2
LimitCORE=0
UMask=0007
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths={writable}
{access}
{network}
[Install]
WantedBy=multi-user.target
"""


def run_web(config: Config, *, host: str | None = None, port: int | None = None) -> None:
    """Serve until asked to stop; logs neither bodies nor addresses of pages."""
    uvicorn = _uvicorn()
    from private_ate.service.web.app import make_app

    web = config.web
    with open_service(config) as (_, service):
        app = make_app(service, _settings(config))
        uvicorn.run(
            app, host=host or str(web.get("host", "127.0.0.1")),
            port=port or int(web.get("port", 8470)), access_log=False, log_level="warning",
            proxy_headers=False, server_header=False, timeout_keep_alive=10,
        )  # fmt: skip


def run_work(config: Config, name: str = "") -> None:
    """Work until asked to stop; the job at hand is finished first."""
    from private_ate.service.worker.loop import Worker, WorkerSettings

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    config, name = config.for_worker(), name or socket.gethostname()
    with hold_worker_name(config.heads.parent, name), open_service(config) as (store, _):
        Worker(store, WorkerSettings(**worker_settings(config)), name).run(stop)


@contextmanager
def hold_worker_name(folder: Path, name: str) -> Iterator[None]:
    """Hold a worker's name on this machine: a second would end the first one's claims.

    The lock goes with the process, so that a worker that was killed can come back at once.
    """
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    with (folder / f".worker-{mark}.lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            msg = f"a worker named {name!r} runs here already; give this one another name"
            raise ArgumentError(msg) from cause
        yield


def approve_plan(service: Service, request: str, plan: str, curator: str) -> str:
    """Approve a plan on the worker's side, in the name of a curator who is there."""
    with service.store.snapshot() as execute:
        actor = find_user(execute, curator)
    return replace(service, manages=True).approve(actor, request, plan).state


def create_demo(folder: Path, port: int) -> dict[str, str]:
    """Make a service with the bundled study; return a token for each role."""
    from private_ate.datasets.clinic import draw_clinic

    tokens = {"curator": create_service(folder, port=port, tick=1.0, grace=0.0, curator="carol")}
    config = read_config(folder)
    study = draw_clinic()
    known = replace(study.domain, outcome=study.domain.outcome.with_missing("public"))
    study.frame.write_csv(folder / "data" / "clinic.csv")
    with open_service(config) as (store, _):
        add_file(
            config, store, "clinic.csv", known, name="clinic", population="patients",
            level="label", epsilon=_DEMO_EPSILON, policy=Policy(epsilon_per_month="2"),
        )  # fmt: skip
        with store.transaction() as execute:
            for name, role in (("alice", "analyst"), ("olga", "auditor")):
                add_user(execute, name, role, "setup", now())
                tokens[role] = issue_token(execute, name, "setup", now(), days=7)
    return tokens


def run_demo(
    folder: Path, port: int, write: Callable[[str], None], *, shows_tokens: bool = True
) -> None:
    """Come up on loopback with the bundled study, a worker beside, and three tokens.

    Without ``shows_tokens`` they are written to a file that its owner alone can read: what is
    printed may end in a log. A signal to end ends the worker too.
    """
    _uvicorn()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    fresh = not (folder / "service.toml").exists()
    if fresh:
        _show_tokens(folder, create_demo(folder, port), write, shows_tokens=shows_tokens)
    config = read_config(folder)
    write(f"\nOpen http://127.0.0.1:{port}/ and paste one. Stop with Ctrl-C.\n")
    worker = subprocess.Popen(  # noqa: S603  # our own module
        [sys.executable, "-c", _DEMO_WORKER, str(os.getpid()), str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        run_web(config, host="127.0.0.1", port=port)
    finally:
        worker.terminate()
        worker.wait(timeout=60)


def _show_tokens(
    folder: Path, tokens: dict[str, str], write: Callable[[str], None], *, shows_tokens: bool
) -> None:
    lines = [f"  {role:8} {tokens[role]}" for role in ("analyst", "curator", "auditor")]
    write(f"\nA service with a simulated study in {folder}.")
    if shows_tokens:
        write("\n".join(["Tokens, shown once:\n", *lines]))
        return
    write_secret(folder / "tokens.txt", "\n".join([*lines, ""]))
    write(f"Tokens are in {folder / 'tokens.txt'}, since this is no terminal.")


def _settings(config: Config) -> Any:  # noqa: ANN401  # WebSettings, loaded late
    from private_ate.service.web.authentication import Buckets, Proxy, WebSettings

    web = config.web
    proxy = web.get("proxy", {})
    secret = ""
    if proxy.get("secret_file"):
        try:
            secret = (config.folder / str(proxy["secret_file"])).read_text("utf-8").strip()
        except OSError as cause:
            msg = "the proxy's secret cannot be read; see service.toml"
            raise ArgumentError(msg) from cause
    believed = Proxy(tuple(str(item) for item in proxy.get("addresses", ())), secret)
    rate = real_number("rate", web.get("rate", 200.0), 0.01, 1e9)
    return WebSettings(
        origin=str(web.get("origin", "")), proxy=believed, users=Buckets(rate, 5 * rate)
    )


def _uvicorn() -> Any:  # noqa: ANN401  # an optional module
    try:
        import fastapi  # noqa: F401  # the `serve` extra
        import uvicorn
    except ImportError as cause:
        msg = "the service needs fastapi and uvicorn: pip install 'private-ate[serve]'"
        raise ArgumentError(msg) from cause
    return uvicorn


def write_units(folder: Path) -> Path:
    """Write the two units into a folder of their own and return it."""
    home = folder.resolve()
    units = home / "systemd"
    units.mkdir(exist_ok=True)
    shared = {"python": sys.executable, "folder": home, "writable": home}
    web = _UNIT.format(
        what="web", user="private-ate-web", command="web", network="",
        access=f"InaccessiblePaths={home}/data {home}/worker.toml {home}/worker.key", **shared,
    )  # fmt: skip
    work = _UNIT.format(
        what="worker", user="private-ate-work", command="work",
        access=f"ReadOnlyPaths={home}/data", network="TimeoutStopSec=1h\n", **shared,
    )  # fmt: skip
    units.chmod(0o750)
    for name, text in (("web", web), ("work", work)):
        unit = units / f"private-ate-{name}.service"
        unit.write_text(text, "utf-8")
        unit.chmod(0o640)
    return units
