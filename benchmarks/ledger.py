"""Charges a second beside a bare insert with the same durability, and fsyncs per charge.

Run: python benchmarks/ledger.py [charges]
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from private_ate.ledger.binding import Charge
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.ledger import Ledger

_ROUNDS = 5


def charge_rate(folder, charges):
    ledger = Ledger.create(folder / "ledger.db", "trial", epsilon="1000000")
    made = [
        Charge("trial", str(i), "p" * 64, BudgetUnits.of(Fraction(1, 1000))) for i in range(charges)
    ]
    start = time.perf_counter()
    for charge in made:
        ledger.spend(charge)
    seconds = time.perf_counter() - start
    ledger.verify()
    ledger.close()
    return charges / seconds


def insert_rate(folder, charges):
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
    start = time.perf_counter()
    for number in range(charges):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 400))
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return charges / seconds


def count_fsyncs(folder, charges):
    """Count the fsync calls that further charges add; None where strace is not installed."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ledger; from pathlib import Path; "
        "ledger.charge_rate(Path(sys.argv[2]), int(sys.argv[3]))"
    )
    counts = []
    for number in (1, charges):
        log, place = folder / f"strace-{number}", folder / f"place-{number}"
        place.mkdir()
        traced = [sys.executable, "-c", code, Path(__file__).parent, place, str(number)]
        subprocess.run(
            [strace, "-f", "-e", "trace=fsync,fdatasync", "-o", log, *traced], check=True
        )
        counts.append(log.read_text().count("sync("))
    return (counts[1] - counts[0]) / (charges - 1)


def main():
    charges = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        rates = []
        for turn in range(_ROUNDS):
            place = folder / str(turn)
            place.mkdir()
            rates.append((charge_rate(place, charges), insert_rate(place, charges)))
        ours, bare = (sorted(column)[_ROUNDS // 2] for column in zip(*rates, strict=True))
        print(json.dumps({
            "charges": charges,
            "charges_per_second": round(ours),
            "bare_inserts_per_second": round(bare),
            "slower_by": round(bare / ours, 2),
            "fsyncs_per_charge": count_fsyncs(folder, 50),
        }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
