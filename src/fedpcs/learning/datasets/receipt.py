"""A note that a fetch leaves in a tree of images: what the tree held when it came out of the published archive.

Nobody publishes a checksum of such a tree, only of its archive. The note lets a later check say that the tree is still
what the archive held. It guards against accidents, not against someone who can write to the folder.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from fedpcs._files import MOST_ARRAYS, open_regular, read_text

_RECEIPT = ".fedpcs-fetched.json"


def write_receipt(folder: Path) -> None:
    """Note the content of a tree that has just come out of an archive with the published checksum."""
    (folder / _RECEIPT).write_text(json.dumps({"sha256": tree_digest(folder)}) + "\n", encoding="utf-8")


def is_as_fetched(folder: Path) -> bool:
    """Return whether a tree has a note, and still is what the note says."""
    try:
        noted = json.loads(read_text(folder / _RECEIPT))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(noted, dict) and noted.get("sha256") == tree_digest(folder)


def tree_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files below `folder`, but for hidden ones at its top."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not name.parts[0].startswith("."):
            with open_regular(path, MOST_ARRAYS) as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{name.as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
