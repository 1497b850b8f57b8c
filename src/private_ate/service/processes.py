"""A service's folder and its processes: settings, web, worker, a demonstration, systemd units.

``service.toml`` is for both processes, ``worker.toml`` with the folder of records and the key of
their digests for the worker alone. A store that lacks the newest published head is never opened.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from private_ate.arguments import parse_memory, real_number, truth_value, whole_number
from private_ate.codec import decode
from private_ate.domain import Domain
from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.stores import Store
from private_ate.service.histories import publish_heads, require_heads
from private_ate.service.limits import Limits
from private_ate.service.operations import Service
from private_ate.service.policy import Dataset, Policy
from private_ate.service.store.catalogue import (
    add_dataset,
    add_population,
    name_of,
    open_source,
    usual_policy,
)
from private_ate.service.store.events import now
from private_ate.service.store.tables import connect, create
from private_ate.service.store.users import add_user, find_user, issue_token

_SERVICE: Final = """# Settings of both processes.
store = "{store}"
heads = "heads.ndjson" # better on another disk: it shows that the store is no old copy
tick = {tick} # seconds: answers appear at whole ticks after they were asked for
grace = {grace} # seconds in which a request can be cancelled

[limits] # of one analyst; made-up data is counted by itself, with the same limits
under_way = 10
waiting = 10 # for a curator
a_day = 100

[web]
host = "127.0.0.1"
port = {port}
origin = "{origin}" # as browsers see it; forms of other origins are refused
rate = 200 # requests a second that one user may make
manages = true # false if the web has a role of its own in PostgreSQL: serve rights

# A proxy that says who somebody is (after OIDC, for example) in X-Private-Ate-User. It is believed
# from these addresses only, and only with the secret in X-Private-Ate-Secret.
[web.proxy]
addresses = []
secret_file = ""
"""
_WORKER: Final = """# For the worker alone: chmod 600, owned by its user.
store = "" # the worker's own address of the database, if the web has another
data = "data" # the folder of the records; the web process needs no right to it
key_file = "worker.key"
memory = "8GB" # of one job
seconds = 3600 # of one job at most; less where its public bound is shorter
"""
_KNOWN: Final = {"store", "heads", "tick", "grace", "limits", "web"}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of both processes."""

    folder: Path
    store: str
    heads: Path
    tick: float
    grace: float
    web: dict[str, Any]
    limits: Limits = field(default_factory=Limits)

    def worker(self) -> dict[str, Any]:
        """Read what only the worker may."""
        return _toml(self.folder / "worker.toml")

    def for_worker(self) -> Config:
        """Return the settings on the worker's side: with its own address of the store."""
        return replace(self, store=str(self.worker().get("store", "")) or self.store)


def create_service(  # one value per decision
    folder: Path,
    *,
    store: str = "",
    origin: str = "",
    port: int = 8470,
    tick: float = 60.0,
    grace: float = 10.0,
    curator: str = "curator",
) -> str:
    """Make a folder with a store, keys and units; return the first curator's token."""
    if (folder / "service.toml").exists():
        msg = f"there is a service in {str(folder)!r} already"
        raise ArgumentError(msg)
    port = whole_number("port", port, 1, 65535)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(folder.stat().st_mode & ~0o027)  # 0750 at most
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data").chmod(0o700)
    text = _SERVICE.format(
        store=store or "service.db", tick=tick, grace=grace, port=port,
        origin=origin or f"http://127.0.0.1:{port}",
    )  # fmt: skip
    _shared_file(folder / "service.toml").write_text(text, "utf-8")
    write_secret(folder / "worker.toml", _WORKER)
    write_secret(folder / "worker.key", secrets.token_hex(32) + "\n")
    config = read_config(folder)
    _shared_file(config.heads)
    if "://" not in config.store:
        _shared_file(Path(config.store))  # SQLite gives its journal the same mode
    made = create(config.store)
    try:
        with made.transaction() as execute:
            add_user(execute, curator, "curator", "setup", now())
            token = issue_token(execute, curator, "setup", now())
        publish_heads(made, config.heads)
    finally:
        made.close()
    return token


def read_config(folder: Path) -> Config:
    """Read a folder's settings."""
    plain = _toml(folder / "service.toml")
    unknown = sorted(set(plain) - _KNOWN)
    if unknown:
        msg = (
            f"service.toml has an unknown entry {unknown[0]!r}; known: {', '.join(sorted(_KNOWN))}"
        )
        raise ArgumentError(msg)
    store = str(plain.get("store", "service.db"))
    if "://" not in store:
        store = str(folder / store)
    return Config(
        folder, store, folder / str(plain.get("heads", "heads.ndjson")),
        real_number("tick", plain.get("tick", 60.0), 0.1, 86400.0),
        real_number("grace", plain.get("grace", 10.0), 0.0, 86400.0),
        dict(plain.get("web", {})),
        decode(Limits, plain.get("limits", {}), "[limits]", "service.toml"),
    )  # fmt: skip


@contextmanager
def open_service(config: Config) -> Iterator[tuple[Store, Service]]:
    """Open a folder's store; one that lacks the newest published head is refused."""
    with connect(config.store) as store:
        require_heads(store, config.heads)
        manages = truth_value("manages", config.web.get("manages", True))
        yield store, Service(
            store, config.tick, config.grace, manages=manages, limits=config.limits
        )  # fmt: skip


def add_file(  # noqa: PLR0913  # one value per fact about a data set
    config: Config,
    store: Store,
    source: str,
    domain: Domain,
    *,
    name: str,
    population: str,
    level: str,
    epsilon: str | None,
    policy: Policy | None = None,
    rows_per_person: int = 1,
) -> None:
    """Register a file of the worker's folder: reads its header and counts its rows."""
    from private_ate.data.files import MEMORY_LIMIT, open_schema, open_table

    folder = config.folder / str(config.worker()["data"])
    file = open_source(folder, source)
    if file is None:
        msg = (
            f"there is no file {name_of(source)!r} in the worker's folder of records "
            f"({str(folder)!r}); put it there first"
        )
        raise ArgumentError(msg)
    schema = open_schema(file, level)  # type: ignore[arg-type]  # checked with the population
    for column in domain.columns:
        schema.require(column, "declared", domain.columns)
    columns = schema.names
    public = [name for name in domain.public_columns if name in columns]
    rows = open_table(file, MEMORY_LIMIT, public, public=public).rows
    with store.transaction() as execute:
        new = Dataset(
            name, population, level, domain, columns, rows, rows_per_person, source, "", False,  # type: ignore[arg-type]  # checked with the population
            policy or usual_policy(execute, population),
        )  # fmt: skip
        if epsilon is not None:
            add_population(execute, population, level, epsilon, "0", "setup")
        add_dataset(execute, new, "setup")
    publish_heads(store, config.heads)


def worker_settings(config: Config) -> dict[str, Any]:
    """Return the worker's settings, checked."""
    plain = config.worker()
    data = config.folder / str(plain.get("data", "data"))
    if not data.is_dir():
        msg = "the worker's folder of records is not there; see worker.toml"
        raise ArgumentError(msg)
    try:
        key = (config.folder / str(plain.get("key_file", ""))).read_text("utf-8").strip()
        bytes.fromhex(key)
    except (OSError, ValueError) as cause:
        msg = "the worker's key cannot be read; see worker.toml"
        raise ArgumentError(msg) from cause
    return {
        "store": config.store, "data": data, "key": key, "heads": config.heads, "tick": config.tick,
        "memory": parse_memory(plain.get("memory", "8GB")),
        "seconds": whole_number("seconds", plain.get("seconds", 3600), 1, 10**7),
    }  # fmt: skip


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as cause:
        msg = f"there is no {path.name} to read in {str(path.parent)!r}; make a service there first"
        raise LedgerError(msg) from cause
    except ValueError as cause:
        msg = f"{path.name} is not valid TOML"
        raise ArgumentError(msg) from cause


def _shared_file(path: Path) -> Path:
    """Make a file for both processes: for its owner and, to read, for their group."""
    path.touch()
    path.chmod(0o640)
    return path


def write_secret(path: Path, text: str) -> None:
    """Write a new file that its owner alone can read."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, "utf-8")


_DEMO_EPSILON: Final = "3"
_DEMO_WORKER: Final = """import signal, sys
from pathlib import Path
from private_ate.service.job import end_with_parent
from private_ate.service.processes import read_config, run_work
end_with_parent(int(sys.argv[1]), signal.SIGTERM)
run_work(read_config(Path(sys.argv[2])))
"""
_UNIT: Final = """[Unit]
Description=private-ate: {what}
After=network.target

[Service]
User=private-ate-{name}
Group=private-ate
ExecStart={python} -m private_ate serve {name} {folder}
Restart=always
RestartSec=2
LimitCORE=0
UMask=0007
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths={folder}
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
    from private_ate.service.worker import Worker, WorkerSettings

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
        tokens = create_demo(folder, port)
        lines = [f"  {role:8} {tokens[role]}" for role in ("analyst", "curator", "auditor")]
        write(f"\nA service with a simulated study in {folder}.")
        if shows_tokens:
            write("\n".join(["Tokens, shown once:\n", *lines]))
        else:
            write_secret(folder / "tokens.txt", "\n".join([*lines, ""]))
            write(f"Tokens are in {folder / 'tokens.txt'}, since this is no terminal.")
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
    units.chmod(0o750)
    hidden = f"InaccessiblePaths={home}/data {home}/worker.toml {home}/worker.key"
    for name, what, access, network in (
        ("web", "web", hidden, ""),
        ("work", "worker", f"ReadOnlyPaths={home}/data", "TimeoutStopSec=1h\n"),
    ):
        text = _UNIT.format(
            name=name, what=what, access=access, network=network, python=sys.executable, folder=home
        )
        unit = units / f"private-ate-{name}.service"
        unit.write_text(text, "utf-8")
        unit.chmod(0o640)
    return units
