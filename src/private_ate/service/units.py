"""Units for systemd: web and worker as different users, each with as little as it needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

__all__ = ["write_units"]

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
