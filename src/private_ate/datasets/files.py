"""Finds a data file inside an installed package without importing the package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from private_ate.errors import DatasetError

__all__ = ["PackagedFile"]


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file that a package on the index carries, known by its sha256."""

    package: str
    version: str
    path: str
    sha256: str

    def read(self) -> bytes:
        """Return the bytes of the file, after checking that they are the expected ones."""
        content = self._locate().read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            msg = (
                f"{self.path} of the installed {self.package} is not the file of version "
                f"{self.version}; run `make data` to install that version"
            )
            raise DatasetError(msg)
        return content

    def _locate(self) -> Path:
        try:
            path = Path(str(distribution(self.package).locate_file(self.path)))
        except PackageNotFoundError:
            path = None
        if path is None or not path.is_file():
            msg = (
                f"this data set is read from the package {self.package} {self.version}, which is "
                f"not installed; run `make data`, or `pip install {self.package}=={self.version}`"
            )
            raise DatasetError(msg)
        return path
