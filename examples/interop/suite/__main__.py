"""Runs every cell of both tables, one after the other, prints the tables, and holds them against the ones kept in README.md.

usage: python3 suite [--write] [--only TEXT]    (the script `run` sets the places up)
  --write      keep the tables in README.md, instead of comparing them
  --only TEXT  only rows with this text in their name; nothing is compared
"""

import argparse
import os
import sys
import time
from pathlib import Path

import ours
import tapes
import theirs
import wrong_lines
from cell import Checker, Unexpected

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- what `run --write` wrote begins -->\n", "<!-- what `run --write` wrote ends -->\n"


class Places:
    """Where everything is."""

    def __init__(self):
        self.packages = HERE / ".packages"
        self.target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.node = os.environ.get("NODE", "node")
        # The Inspector wants a newer one than many have.
        self.node_22 = str(self.packages / "node_modules" / "node" / "bin" / "node")
        self.python_v1, self.python_v2 = (str(self.packages / f"python-{v}" / "bin" / "python") for v in ("v1", "v2"))
        self.env = {**os.environ, "PYTHONWARNINGS": "ignore", "NODE_NO_WARNINGS": "1", "NO_COLOR": "1"}

    def program(self, name):
        return str(self.target / "debug" / name)

    def example(self, name):
        return str(self.target / "debug" / "examples" / name)

    def peer(self, name):
        # Node looks for packages from where a script lies, so `run` copies the scripts to the packages.
        return str((self.packages if name.endswith(".mjs") else HERE) / "peers" / name)

    def package(self, name, path):
        return str(self.packages / "node_modules" / "@modelcontextprotocol" / name / path)


def table(corner, columns, rows):
    lines = [f"| {corner} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    return [*lines, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    places, schemas = Places(), tapes.Schemas.find()
    if schemas is None:
        print("SKIPPED: no JSON schemas of the protocol (MCP_SCHEMAS names their folder): the tapes are not validated", file=sys.stderr)
    checker = Checker(schemas and tapes.Schemas(schemas), tapes.check)
    if schemas:
        print(f"the check of tapes finds {wrong_lines.check(checker.schemas)} of {len(wrong_lines.WRONG)} wrong lines")
    counts, start = {"ok": 0, "wrong": 0}, time.monotonic()

    def one(name, column, run):
        before = time.monotonic()
        try:
            run()
            word = "ok"
        except (Unexpected, KeyError, IndexError, TypeError, ValueError) as error:
            word = "wrong"
            print(f"\n{name} × {column}: {type(error).__name__ if not isinstance(error, Unexpected) else 'unexpected'}: {error}", file=sys.stderr)
        counts[word] += 1
        print(f"{word:5} {time.monotonic() - before:5.1f} s  {name} × {column}", flush=True)
        return word

    rows = [(row.name, [one(row.name, column, lambda: ours.cell(places, checker, row, column)) for column in ours.RUNTIMES])
            for row in ours.servers(places) if asked.only in row.name]
    lines = table("server", [f"`mcp-call` on {column}" for column in ours.RUNTIMES], rows)
    rows = [(row.name, [one(row.name, " ".join(column), lambda: theirs.cell(places, checker, row, column)) if row.eras[column[0]] else "–"
                        for column in theirs.COLUMNS])
            for row in theirs.clients(places) if asked.only in row.name]
    lines += ["", *table("client", [f"`--era {era}` on {runtime}" for era, runtime in theirs.COLUMNS], rows)]

    print("", *lines, "", sep="\n")
    if schemas:
        print(f"{checker.messages} messages on the tapes of cells that are ok, each valid by the schema of its revision")
    print(f"{counts['ok']} cells as expected, {counts['wrong']} not; {time.monotonic() - start:.0f} s")
    kept = HERE / "README.md"
    text = kept.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    fresh = head + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + tail
    if asked.write and not asked.only:
        kept.write_text(fresh, encoding="utf-8")
    elif not asked.only and fresh != text:
        print("the tables are not the ones in README.md; look at the difference, and keep them with --write", file=sys.stderr)
        return 1
    return 1 if counts["wrong"] else 0


sys.exit(main())
