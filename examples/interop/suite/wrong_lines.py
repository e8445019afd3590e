"""Shows that the check of tapes finds what is wrong: each of these tapes has one line that its schema forbids, said by one side."""

import json
import tempfile
from pathlib import Path

import tapes

META = {"io.modelcontextprotocol/protocolVersion": tapes.MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
OPEN = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}


def result(**members):
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def call(**params):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, **params}}


LISTED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
GOOD = [("out", LIST), ("in", result(tools=[TOOL], **LISTED))]
# What is wrong, who says it, and the lines.
WRONG = [
    ("a request without its capabilities", "client", [("out", {**LIST, "params": {"_meta": {k: v for k, v in META.items() if "V" in k}}})]),
    ("a call without a name", "client", [("out", call(arguments={}))]),
    ("a method that the revision does not have", "client", [("out", {**LIST, "method": "resources/subscribe"})]),
    ("a line that is no JSON", "client", [("out", "hello")]),
    ("tools that are no list", "server", [("out", LIST), ("in", result(tools={}, **LISTED))]),
    ("a tool without a schema", "server", [("out", LIST), ("in", result(tools=[{"name": "t"}], **LISTED))]),
    ("a list without its lifetime", "server", [("out", LIST), ("in", result(tools=[TOOL], resultType="complete"))]),
    ("a result that nobody asked for", "server", [("out", LIST), ("in", {**result(tools=[], **LISTED), "id": 2})]),
    ("an error without a message", "server", [("out", LIST), ("in", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}})]),
    ("progress without a token", "server",
     [("in", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})]),
    ("a handshake without a server", "server", [("out", OPEN), ("in", result(protocolVersion="2025-11-25", capabilities={}))]),
]


def found(schemas, said):
    with tempfile.TemporaryDirectory(prefix="mcp-wire-interop-") as folder:
        tape = Path(folder, "wrong.tape")
        lines = ({"t_us": 0, way: (what if isinstance(what, str) else json.dumps(what)) + "\n"} for way, what in said)
        tape.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return tapes.check(schemas, tape)[1]


def check(schemas):
    """How many wrong lines were found; an error names one that was not."""
    if blamed := found(schemas, GOOD):
        raise AssertionError(f"the check blames lines that are right: {blamed}")
    for what, who, said in WRONG:
        blamed = found(schemas, said)
        if not blamed or {side for side, _ in blamed} != {who}:
            raise AssertionError(f"the check does not find {what}: it says {blamed}")
    return len(WRONG)
