"""From a folder to a release: init, add, web, work, verify, the client and `ask`."""

import os
import re
import signal
import socket
import stat
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)

from house_people import DOMAIN, start_command
from web_client import Client as InProcess

from private_ate import BudgetError, LedgerError
from private_ate.cli.app import main
from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import ArgumentError
from private_ate.service import Client, ServiceError
from private_ate.service.histories import verify_service
from private_ate.service.policy import Policy
from private_ate.service.processes import (
    _settings,
    add_file,
    create_demo,
    create_service,
    open_service,
    read_config,
    run_demo,
    worker_settings,
)
from private_ate.service.store.users import add_user, issue_token
from private_ate.service.web.app import make_app

pytestmark = pytest.mark.service


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["private-ate", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def process(*words):
    """Run a command of ours, and stop it by its own number."""
    started = start_command(*words)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(timeout=60)


def wait_until(answers, seconds=60):
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        with suppress(OSError, ServiceError):
            if answers():
                return
        time.sleep(0.05)
    pytest.fail("nothing answers")


def is_up(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/healthz")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def test_the_commands_go_from_a_folder_to_a_release(tmp_path, monkeypatch, capsys):
    folder, port = tmp_path / "service", free_port()
    assert run(monkeypatch, "serve", "init", folder, "--port", port, "--curator", "carol") == 0
    token = re.search(r"pate_\w+_[\w-]{43}", capsys.readouterr().out)[0]
    settings = (folder / "service.toml").read_text()
    (folder / "service.toml").write_text(
        settings.replace("tick = 60.0", "tick = 1.0").replace("grace = 10.0", "grace = 0.0")
    )
    study = draw_clinic(400)
    study.frame.write_csv(folder / "data" / "clinic.csv")
    DOMAIN.write(tmp_path / "clinic.toml")
    added = ["--domain", tmp_path / "clinic.toml", "--name", "clinic", "--population", "patients"]
    level = ["--level", "label", "--epsilon", "1"]
    assert run(monkeypatch, "serve", "add", folder, "clinic.csv", *added, *level) == 0
    with open_service(read_config(folder)) as (store, service), store.transaction() as execute:
        add_user(execute, "alice", "analyst", "carol", service.clock())
        alice = issue_token(execute, "alice", "carol", service.clock())
    monkeypatch.setenv("PRIVATE_ATE_TOKEN", alice)
    capsys.readouterr()
    url = f"http://127.0.0.1:{port}"

    with process("serve", "web", folder), process("serve", "work", folder):
        wait_until(lambda: is_up(port))
        asked = ["ask", url, "clinic", "--epsilon", "0.3", "--key", "one", "--json"]
        assert run(monkeypatch, *asked) == 0
        first = capsys.readouterr().out
        assert run(monkeypatch, *asked) == 0
        assert capsys.readouterr().out == first  # the stored release, no new noise
        assert run(monkeypatch, "ask", url, "clinic", "--epsilon", "5") == 3
        assert "has ε = 0.7 left of ε = 1" in capsys.readouterr().err
        assert run(monkeypatch, "ask", url, "clinic", "--epsilon", "0.1", "--plan-only") == 0
        plan = capsys.readouterr().out
        assert "half-width" in plan
        assert "enough for 7 such answers" in plan
        client = Client(url, alice)
        assert client.datasets()[0]["rows"] == 400
        head = client.heads()[0]["hash"]
        assert client.verify(head)["verified"]
        assert client.dummy("clinic", 5).count("\n") == 6
        with pytest.raises(ServiceError, match="valid token") as refusal:
            Client(url, token[:-1] + "x").datasets()
        assert refusal.value.status == 401
        with pytest.raises(BudgetError, match="nothing was spent"):
            client.plan("clinic", epsilon="0.8").ask()
        dummy = client.plan("clinic", epsilon="2", dummy=True).ask().wait()
        assert dummy.guarantee == "none (dummy data)"
        with pytest.raises(ServiceError, match="no such data set"):
            client.plan("nothing", epsilon="1")
    assert run(monkeypatch, "serve", "verify", folder, "--head", head) == 0
    assert "verified: 3 entries" in capsys.readouterr().out
    assert run(monkeypatch, "serve", "verify", folder, "--head", "f" * 64) == 2


def test_a_file_that_cannot_be_added_is_told_with_what_to_do(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    run(monkeypatch, "serve", "init", folder, "--curator", "carol")
    DOMAIN.write(tmp_path / "clinic.toml")
    add = [
        "serve", "add", folder, "own.csv", "--domain", tmp_path / "clinic.toml", "--name", "own",
        "--population", "patients", "--level", "label", "--epsilon", "1",
    ]  # fmt: skip
    assert run(monkeypatch, *add) == 2
    assert f"({str(folder / 'data')!r}); put it there first" in capsys.readouterr().err

    draw_clinic(400).frame.write_csv(folder / "data" / "own.csv", separator=";")
    assert run(monkeypatch, *add) == 2
    told = capsys.readouterr().err
    assert "its first line holds semicolons" in told
    assert "--sep ';'" in told
    assert run(monkeypatch, *add, "--sep", ";") == 0


def test_only_the_worker_s_user_reads_what_is_the_worker_s(tmp_path):
    create_service(tmp_path / "service")

    for name in ("data", "worker.toml", "worker.key"):
        mode = stat.S_IMODE((tmp_path / "service" / name).stat().st_mode)
        assert mode & 0o077 == 0, name


def test_others_read_nothing_of_a_new_service(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    assert run(monkeypatch, "serve", "init", folder) == 0
    capsys.readouterr()

    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        allowed = 0o750 if path.is_dir() else 0o640
        assert mode & ~allowed == 0, (path, oct(mode))


def test_the_web_needs_neither_records_nor_what_is_the_worker_s(tmp_path):
    tokens = create_demo(tmp_path / "service", 8470)
    for name in ("worker.toml", "worker.key", "data/clinic.csv"):
        (tmp_path / "service" / name).unlink()
    (tmp_path / "service" / "data").rmdir()
    place = read_config(tmp_path / "service")

    with open_service(place) as (_, service):
        client = InProcess(make_app(service, _settings(place)))
        headers = {"Authorization": f"Bearer {tokens['analyst']}", "Idempotency-Key": "one"}
        asked = {"dataset": "clinic", "epsilon": "0.3"}
        assert client.post("/v1/plans", json=asked, headers=headers).status_code == 200
        assert client.post("/v1/requests", json=asked, headers=headers).status_code == 202


def test_the_units_keep_the_records_from_the_web(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    assert run(monkeypatch, "serve", "init", folder) == 0
    web = (folder / "systemd" / "private-ate-web.service").read_text()
    work = (folder / "systemd" / "private-ate-work.service").read_text()

    assert f"InaccessiblePaths={folder}/data" in web
    assert f"ReadOnlyPaths={folder}/data" in work
    assert "LimitCORE=0" in work
    assert "User=private-ate-web" in web
    capsys.readouterr()


def test_a_folder_is_made_once_and_read_with_care(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    create_service(folder)
    with pytest.raises(ArgumentError, match="already"):
        create_service(folder)
    assert run(monkeypatch, "serve", "web", tmp_path / "nowhere") == 2
    assert "make a service there first" in capsys.readouterr().err
    (folder / "worker.key").write_text("no key")
    with pytest.raises(ArgumentError, match="key"):
        worker_settings(read_config(folder))
    (folder / "service.toml").write_text("wrong = 1")
    with pytest.raises(ArgumentError, match="unknown entry 'wrong'"):
        read_config(folder)


def test_neither_process_starts_on_an_old_backup(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    create_service(folder)
    backup = (folder / "service.db").read_bytes()
    place = read_config(folder)
    draw_clinic(50).frame.write_csv(folder / "data" / "clinic.csv")
    with open_service(place) as (store, _):
        add_file(place, store, "clinic.csv", DOMAIN, name="clinic", population="patients",
                 level="label", epsilon="1", policy=Policy())  # fmt: skip
    (folder / "service.db").write_bytes(backup)

    for command in ("web", "work", "verify"):
        assert run(monkeypatch, "serve", command, folder) == 2
        assert "it is an older copy" in capsys.readouterr().err


def test_a_service_whose_tables_were_changed_does_not_verify(small_house):
    verify_service(small_house.store)
    row = small_house.ask()
    with small_house.store.transaction() as execute:
        execute("UPDATE service_requests SET state = 'done' WHERE id = ?", (row.id,))

    with pytest.raises(LedgerError, match="which the ledger does not bear out"):
        verify_service(small_house.store)


def test_the_demonstration_comes_up_with_three_tokens_and_ends_quietly(tmp_path):
    port, told = free_port(), []
    tokens = create_demo(tmp_path / "ready", port)
    assert set(tokens) == {"analyst", "curator", "auditor"}

    def stop():
        wait_until(lambda: is_up(port))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with suppress(KeyboardInterrupt):
        run_demo(tmp_path / "fresh", port, told.append)
    thread.join()

    assert "".join(told).count("pate_") == 3
    assert f"http://127.0.0.1:{port}/" in "".join(told)


def children_of(number):
    found = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [int(child) for child in found]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_demonstration_leaves_no_worker_behind_and_no_token_in_a_log(tmp_path, number):
    port, log = free_port(), tmp_path / "log"
    with log.open("w") as file:
        demo = start_command(
            "serve", "demo", "--port", port, stdout=file,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
    wait_until(lambda: is_up(port))
    (worker,) = children_of(demo.pid)
    (tokens,) = tmp_path.glob("private-ate-*/tokens.txt")
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    assert tokens.read_text().count("pate_") == 3
    demo.send_signal(number)
    demo.wait(timeout=60)

    wait_until(lambda: not Path(f"/proc/{worker}").exists())
    if number == signal.SIGTERM:
        assert list(tmp_path.glob("private-ate-*")) == []
    assert "pate_" not in log.read_text()
    assert str(tokens) in log.read_text()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ate.example.org"])
def test_the_client_speaks_http_alone(url):
    with pytest.raises(ArgumentError, match="https://"):
        Client(url, "x")


def test_a_token_is_taken_from_a_file_or_the_environment(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("PRIVATE_ATE_TOKEN", raising=False)
    assert run(monkeypatch, "ask", "http://127.0.0.1:1", "clinic", "--epsilon", "1") == 2
    assert "give a token" in capsys.readouterr().err
    (tmp_path / "token").write_text("pate_x_y\n")
    asked = ["ask", "http://127.0.0.1:1", "clinic", "--epsilon", "1", "--token-file"]
    assert run(monkeypatch, *asked, tmp_path / "token") == 2
    assert "does not answer" in capsys.readouterr().err
    assert "pate_x_y" not in repr(Client("http://127.0.0.1:1", "pate_x_y"))
