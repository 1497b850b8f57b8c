"""A PostgreSQL server for tests, which live as long as they do, and fresh places in it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

HOW_TO_INSTALL = (
    "THE POSTGRESQL LEDGER IS NOT TESTED HERE: install the server (Debian: apt install postgresql; "
    "macOS: brew install postgresql) and the driver (pip install 'psycopg[binary]')"
)


def _binaries():
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += sorted(Path("/opt/homebrew/opt").glob("postgresql*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _ordinary_user():
    """PostgreSQL refuses to run as root; name somebody else in that case."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return pytest.skip(HOW_TO_INSTALL)


@contextmanager
def _server(binaries):
    # Not pytest's folder: the path of a socket must stay below 108 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = _ordinary_user()
    if user is not None:
        shutil.chown(folder, user)

    def run(program, *arguments):
        subprocess.run(
            [binaries / program, "-D", folder / "data", *arguments],
            check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip

    try:
        run("initdb", "--auth=trust", "--username=ledger", "--no-sync")
        # Every test makes a database of its own: nothing of it has to outlive the machine.
        unsafe = "-c fsync=off -c full_page_writes=off -c autovacuum=off"
        options = f"-c listen_addresses='' -c max_connections=60 {unsafe} -k {folder}"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://ledger@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url():
    """Return the address of an empty database on a server that lives as long as the tests."""
    binaries = _binaries()
    if binaries is None:
        pytest.skip(HOW_TO_INSTALL)
    pytest.importorskip("psycopg", reason=HOW_TO_INSTALL)
    with _server(binaries) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def location(request, tmp_path):
    """Return where a fresh ledger can be made, in either kind of store."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    url = request.getfixturevalue("postgres_url")
    import psycopg

    name = f"test{abs(hash(str(tmp_path))):x}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")
