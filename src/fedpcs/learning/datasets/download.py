"""One file from a server, in pieces if need be: what has arrived is kept, and the next attempt goes on from there.

The bytes gather in a file ending in `.partial`. After a broken connection we ask for the rest (HTTP Range); a server
that cannot do that sends the whole again. Pooch compares the checksum of the whole and only then gives it its name.
"""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from fedpcs.errors import CorruptFile, InvalidInput

Progress = Callable[[int, int | None], None]

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 30.0


def download_file(url: str, target: Path, md5: str, on_progress: Progress = lambda done, total: None) -> None:
    """Bring the file at `url` to `target`, unless it is there with this checksum.

    Args:
        url: An http or https address.
        target: Where it goes; its folder is made.
        md5: Of the whole file.
        on_progress: Called with the bytes that are here and the bytes of the whole, None if the server does not say.

    Raises:
        InvalidInput: The server cannot be reached or does not have the file.
        CorruptFile: The whole has arrived, and its checksum is another.

    Guarantees:
        `target` is whole and right, or not there. After a failure or an interruption the next call goes on from what
        has arrived.
    """
    import pooch

    def downloader(address: str, output_file: str, _: Any) -> None:
        partial = target.with_name(target.name + ".partial")
        _gather(address, partial, on_progress)
        os.replace(partial, output_file)

    pooch.get_logger().setLevel("WARNING")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        pooch.retrieve(url, f"md5:{md5}", fname=target.name, path=target.parent, downloader=downloader)
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise CorruptFile(
            f"{url} must have the md5 {md5}, but what arrived has another. Fetch it once more; if that is no help, its "
            "publisher has changed it."
        ) from None


def _gather(url: str, partial: Path, on_progress: Progress) -> None:
    """Append to `partial` until it is whole. Each attempt must bring a byte, or we stop trying."""
    host = urllib.parse.urlsplit(url).hostname
    while True:
        before = _size(partial)
        try:
            if _attempt(url, partial, on_progress):
                return
            reason: object = "the connection broke"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and before:
                if error.headers.get("Content-Range") == f"bytes */{before}":
                    return  # an earlier call was stopped when the last byte had arrived
                partial.unlink()  # what is here is no beginning of what is there
                continue
            raise InvalidInput(f"{host} answered {error.code} {error.reason} for {url}.") from None
        except (http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
        if _size(partial) <= before:
            raise InvalidInput(f"cannot reach {host} for {url}: {reason}.")


def _attempt(url: str, partial: Path, on_progress: Progress) -> bool:
    """Make one request and say whether the file is whole."""
    start = _size(partial)
    headers = {"User-Agent": "fedpcs", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
        if start and not _goes_on_from(response, start):
            start = 0
        length = response.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        with _opened(partial, "ab" if start else "wb") as file:
            done = start
            while chunk := response.read(_CHUNK_BYTES):
                _write(file, chunk)
                done += len(chunk)
                on_progress(done, total)
    return total is None or done == total


def _opened(partial: Path, mode: str) -> IO[bytes]:
    try:
        return cast(IO[bytes], partial.open(mode))
    except OSError as error:
        raise InvalidInput(f"{partial} cannot be written: {error.strerror}.") from None


def _write(file: IO[bytes], chunk: bytes) -> None:
    """Write at once, so that a full disk is not taken for a broken connection."""
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise InvalidInput(f"{file.name} cannot be written: {error.strerror}. Make room.") from None


def _goes_on_from(response: Any, start: int) -> bool:
    return response.status == 206 and str(response.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
