"""One file from a server, in pieces if need be: what has arrived is kept, and the next attempt goes on from there.

The bytes gather in a file ending in `.partial`. After a broken connection we ask for the rest (HTTP Range); a server
that cannot do that sends the whole again. Pooch compares the checksum of the whole and only then gives it its name.
All of it goes by https, whatever a server redirects to, and ends when more arrives than was published.
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

from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.catalogue import Download

Progress = Callable[[int, int | None], None]

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 30.0


def download_file(download: Download, target: Path, on_progress: Progress = lambda done, total: None) -> None:
    """Bring a published file to `target`, unless it is there with its checksum.

    Args:
        download: Where it is, and how to recognise it.
        target: Where it goes; its folder is made.
        on_progress: Called with the bytes that are here and the bytes of the whole, None if the server does not say.

    Raises:
        InvalidInput: The server cannot be reached or does not have the file, or the way to it is not https.
        CorruptFile: The whole has arrived, and its checksum is another; or more has arrived than was published.

    Guarantees:
        `target` is whole and right, or not there. After a failure or an interruption the next call goes on from what
        has arrived.
    """
    import pooch

    def downloader(address: str, output_file: str, _: Any) -> None:
        partial = target.with_name(target.name + ".partial")
        _gather(download, partial, on_progress)
        os.replace(partial, output_file)

    pooch.get_logger().setLevel("WARNING")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        pooch.retrieve(download.url, download.checksum, fname=target.name, path=target.parent, downloader=downloader)
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise CorruptFile(
            f"{download.url} must have the checksum {download.checksum}, but what arrived has another. Fetch it once "
            "more; if that is no help, its publisher has changed it."
        ) from None


def _gather(download: Download, partial: Path, on_progress: Progress) -> None:
    """Append to `partial` until it is whole. Each attempt must bring a byte, or we stop trying."""
    url = download.url
    _only_https(url)
    host = urllib.parse.urlsplit(url).hostname
    while True:
        before = _size(partial)
        try:
            if _attempt(download, partial, on_progress):
                return
            reason: object = "the connection broke"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and before:
                if error.headers.get("Content-Range") == f"bytes */{before}":
                    return  # an earlier call was stopped when the last byte had arrived
                partial.unlink()  # what is here is no beginning of what is there
                continue
            raise InvalidInput(f"{host} answered {error.code} {printable(error.reason)} for {url}.") from None
        except (http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
        if _size(partial) <= before:
            raise InvalidInput(f"cannot reach {host} for {url}: {printable(reason)}.")


def _attempt(download: Download, partial: Path, on_progress: Progress) -> bool:
    """Make one request and say whether the file is whole."""
    start = _size(partial)
    headers = {"User-Agent": "fedpcs", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(download.url, headers=headers)
    with urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT_SECONDS) as response:
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
                if done > download.num_bytes:
                    break
    if done > download.num_bytes:
        partial.unlink()
        raise CorruptFile(
            f"{download.url} must have {download.num_bytes:,} bytes, but more arrived. Fetch it once more; if that is "
            "no help, its publisher has changed it."
        )
    return total is None or done == total


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address, if that is https too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _only_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _only_https(url: str) -> None:
    if urllib.parse.urlsplit(url).scheme != "https":
        raise InvalidInput(f"a download must go by https, got {printable(url)}. Put the file there by hand.")


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
