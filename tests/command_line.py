"""The command line as tests call it: in a process of its own, or, which is a second quicker, in this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from fedpcs.cli import main


def fedpcs_process(
    *arguments: object, cwd: Path | None = None, seconds: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does."""
    command = [sys.executable, "-c", "from fedpcs.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=seconds)


def fedpcs(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command here; what it prints and its exit code are those of a process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = ["fedpcs", *map(str, arguments)]
    captured = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with patch.object(sys, "argv", words), _inside(cwd), captured[0], captured[1]:
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _inside(folder: Path | None):
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)
