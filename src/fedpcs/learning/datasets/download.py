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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.entry import Download

Progress = Callable[[int, int], None]

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 30.0
_AGAIN = "Fetch it once more; if that is no help, its publisher has changed it."


def download_file(download: Download, target: Path, on_progress: Progress = lambda done, total: None) -> None:
    """Bring a published file to `target`, unless it is there with its checksum.

    Args:
        download: Where it is, and how to recognise it.
        target: Where it goes; its folder is made.
        on_progress: Called with the bytes that are here and the bytes of the whole.

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
    except InvalidInput:  # a ValueError too
        raise
    except ValueError:
        wanted = f"must have the checksum {download.checksum}, but what arrived has another"
        raise CorruptFile(f"{download.url} {wanted}. {_AGAIN}") from None


def _gather(download: Download, partial: Path, on_progress: Progress) -> None:
    """Append to `partial` until it is as long as what was published. Each attempt must bring a byte, or we stop."""
    _only_https(download.url)
    host = urllib.parse.urlsplit(download.url).hostname
    if _size(partial) > download.num_bytes:
        partial.unlink()  # what is here is no beginning of what is there
    while (before := _size(partial)) < download.num_bytes:
        reason: object = "the connection broke"
        try:
            _attempt(download, partial, on_progress)
        except urllib.error.HTTPError as error:
            error.close()
            answer = f"{error.code} {printable(error.reason)}"
            raise InvalidInput(f"{host} answered {answer} for {download.url}.") from None
        except (http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
        if _size(partial) <= before:
            raise InvalidInput(f"cannot reach {host} for {download.url}: {printable(reason)}.")


def _attempt(download: Download, partial: Path, on_progress: Progress) -> None:
    """Make one request, and keep what it brings."""
    done = _size(partial)
    headers = {"User-Agent": "fedpcs", "Accept-Encoding": "identity", **({"Range": f"bytes={done}-"} if done else {})}
    request = urllib.request.Request(download.url, headers=headers)
    with urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT_SECONDS) as response:
        if not str(response.headers.get("Content-Range", "")).startswith(f"bytes {done}-"):
            done = 0  # the server sends the whole again
        with _disk(partial):
            file = partial.open("ab" if done else "wb")
        with file:
            while done <= download.num_bytes and (chunk := response.read(_CHUNK_BYTES)):
                with _disk(partial):
                    file.write(chunk)
                    file.flush()
                done += len(chunk)
                on_progress(done, download.num_bytes)
    if done > download.num_bytes:
        partial.unlink()
        raise CorruptFile(f"{download.url} must have {download.num_bytes:,} bytes, but more arrived. {_AGAIN}")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address, if that is https too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _only_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _only_https(url: str) -> None:
    if urllib.parse.urlsplit(url).scheme != "https":
        raise InvalidInput(f"a download must go by https, got {printable(url)}. Put the file there by hand.")


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Say what a disk refuses, so that it is not taken for a broken connection."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}. Make room, or make it writable.") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
