"""One cell of a table: what was run, what was expected of it, and what came. It knows no peer."""

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

DEADLINE = 60


class Unexpected(Exception):
    """What a cell saw and should not have."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Unexpected(f"{what}: {json.dumps(wanted)} was expected, {json.dumps(seen)} came")


def run(command, stdin="", **more):
    """Runs to the end, and leaves no process behind: (exit status, standard output, standard error)."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             encoding="utf-8", start_new_session=True, **more)
    try:
        out, err = child.communicate(stdin, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        raise Unexpected(f"no end in {DEADLINE} s; it printed {out[-600:]!r} and {err[-600:]!r}") from None
    return child.returncode, out, err


class Checker:
    """Counts what the tapes of all cells hold, if the schemas are there."""

    def __init__(self, schemas, check):
        self.schemas, self.check, self.messages = schemas, check, 0

    def tape(self, path):
        if self.schemas is None:
            return
        seen, wrong = self.check(self.schemas, path)
        self.messages += seen
        for who, text in wrong:
            raise Unexpected(f"the {who} said what its schema forbids: {text}")


def folder():
    return tempfile.TemporaryDirectory(prefix="mcp-wire-interop-", ignore_cleanup_errors=True)


