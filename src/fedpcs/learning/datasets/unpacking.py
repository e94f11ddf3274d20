"""Archives unpacked with suspicion: nothing may land outside the folder it was meant for, and no links are made."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from fedpcs.errors import CorruptFile


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or .tar.gz file into `folder`.

    Raises:
        CorruptFile: The archive is damaged, or one of its members would land outside `folder`.
    """
    try:
        if archive.name.endswith(".zip"):
            _unzip(archive, folder)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    except tarfile.FilterError as error:
        raise CorruptFile(f"{archive} must keep to its own folder: {error}. Do not use this archive.") from None
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptFile(f"{archive} must be a whole archive: {error}. Delete it and fetch it again.") from None


def _unzip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if not _is_tame(member):
                raise CorruptFile(
                    f"{archive} must keep to its own folder, but it holds {member.filename!r}. Do not use this archive."
                )
        file.extractall(folder)


def _is_tame(member: zipfile.ZipInfo) -> bool:
    names = PurePosixPath(member.filename), PureWindowsPath(member.filename)
    return not (stat.S_ISLNK(member.external_attr >> 16) or any(name.anchor or ".." in name.parts for name in names))
