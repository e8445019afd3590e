"""The clients of others against our server, `mcp-demo-server`: which clients there are, and what each must have seen of it."""

import json
import sys
from pathlib import Path

from cell import Unexpected, expect, folder, run

TOOLS = ["echo", "add", "sleep", "log", "print", "spawn_echo", "big", "ask", "fail", "panic", "touch", "exit"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# Of our server: the eras it offers, on one runtime, and what it does by default on the others.
COLUMNS = (("modern", "tokio"), ("dual", "tokio"), ("legacy", "tokio"), ("dual", "smol"), ("dual", "poll"))


class Client:
    """A row: how the client is started, and the era in which it must meet each column's server (None: they have none in common)."""

    def __init__(self, name, command, eras, loses_progress=False):
        self.name, self.command, self.eras = name, command, eras
        self.loses_progress = loses_progress


class Inspector(Client):
    """The Inspector's command-line mode does one thing a start."""


ONLY_MODERN = {"modern": "modern", "dual": "modern", "legacy": None}
ONLY_LEGACY = {"modern": None, "dual": "legacy", "legacy": "legacy"}
BOTH = {"modern": "modern", "dual": "modern", "legacy": "legacy"}


def clients(places):
    node, one, two = places.node, places.python_v1, places.python_v2
    inspector = [places.node_22, places.package("inspector", "clients/launcher/build/index.js"), "--cli"]

    def typescript(version, mode, eras):
        command = [node, places.peer(f"typescript_{version}_client.mjs"), mode]
        return Client(f"TypeScript SDK {version}" + f", {mode}" * (version == "v2"), command, eras, loses_progress=True)

    def python(version, mode, eras):
        command = [(one if version == "v1" else two), places.peer(f"python_{version}_client.py"), mode]
        return Client(f"Python SDK {version}" + f", {mode}" * (version == "v2"), command, eras)

    return [
        Client("rmcp, modern", [places.example("rmcp_client"), "modern"], ONLY_MODERN),
        Client("rmcp, legacy", [places.example("rmcp_client"), "legacy"], ONLY_LEGACY),
        typescript("v2", "modern", ONLY_MODERN), typescript("v2", "auto", BOTH), typescript("v2", "legacy", ONLY_LEGACY),
        typescript("v1", "legacy", ONLY_LEGACY),
        python("v2", "modern", ONLY_MODERN), python("v2", "auto", BOTH), python("v2", "legacy", ONLY_LEGACY),
        python("v1", "legacy", ONLY_LEGACY),
        Inspector("MCP Inspector, auto", [*inspector, "--protocol-era", "auto"], BOTH),
        Inspector("MCP Inspector, legacy", [*inspector, "--protocol-era", "legacy"], ONLY_LEGACY),
    ]


def cell(places, checker, client, column):
    era, runtime = column
    meets = client.eras[era]
    with folder() as scratch:
        recorder = [sys.executable, str(Path(__file__).with_name("record.py")), scratch]
        server = [*recorder, places.program("mcp-demo-server"), "--runtime", runtime, "--era", era]
        if isinstance(client, Inspector):
            inspect(places, client, server, scratch)
        else:
            drive(places, client, server, meets)
        tapes = sorted(Path(scratch).glob("*.tape"))
        if not tapes:
            raise Unexpected("the server was never started")
        for tape in tapes:
            facts(tape, meets)
            checker.tape(tape)


def drive(places, client, server, meets):
    status, out, err = run([*client.command, *server], env=places.env)
    if status != 0:
        raise Unexpected(f"exit status {status}: {err[-800:]}")
    saw = json.loads(out.splitlines()[-1])
    if "version" in saw:
        expect("the version", saw["version"], MODERN if meets == "modern" else LEGACY)
    if saw.get("server") is not None:
        expect("the server", saw["server"], "mcp-demo-server")
    expect("the tools", saw["tools"], TOOLS)
    expect("the sum", saw["sum"], 42)
    expect("the slept", saw["slept"], "slept 60 ms")
    # All three were on the wire: the tape shows it.
    expect("the progress", saw["progress"], [1, 2, 3][:len(saw["progress"])] if client.loses_progress else [1, 2, 3])
    expect("the cancellation", [saw["cancelled"], saw["echo"]], [True, "still here"])
    expect("the error", saw["error"], -5)
    expect("the answer", saw["answer"], "Because")
    if meets == "modern":
        expect("the honoured filter", saw["listens"], ["demo://counter"])
    expect("the update", saw["updated"], "demo://counter")


def inspect(places, client, server, scratch):
    def ask(*words):
        home = {**places.env, "HOME": scratch}
        status, out, err = run([*client.command, *server, *words], env=home)
        if status != 0:
            raise Unexpected(f"{' '.join(words)}: exit status {status}: {err[-800:]}")
        return json.loads(out)

    expect("the tools", [tool["name"] for tool in ask("--method", "tools/list")["tools"]], TOOLS)
    result = ask("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=40", "b=2")
    expect("the sum", result["structuredContent"], {"sum": 42})
    resources = ask("--method", "resources/list")["resources"]
    expect("the resources", [resource["uri"] for resource in resources], ["demo://clock", "demo://counter"])
    read = ask("--method", "resources/read", "--uri", "demo://counter")
    expect("the counter", read["contents"][0]["text"], "0")


def facts(tape, meets):
    """What only the wire shows: the era, all the progress, nothing of a cancelled call after it, and a server that ends by itself."""
    rows = [json.loads(line) for line in tape.read_text(encoding="utf-8").splitlines()]
    expect("the end of the server", rows[-1].get("process"), {"exit": {"code": 0}})
    said = [(way, json.loads(row[way])) for row in rows for way in ("in", "out") if row.get(way, "").strip()]
    calls = {message["id"]: message["params"] for way, message in said if way == "out" and message.get("method") == "tools/call"}
    if not calls:
        return  # a start that only asked for the era: its client may well end it with a signal
    expect("the life of the server", [row["process"] for row in rows if "process" in row], ["started", {"exit": {"code": 0}}])
    claims = {"io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {}) for params in calls.values()}
    if claims != {meets == "modern"}:
        raise Unexpected(f"calls of the {meets} era were expected")
    for identity, params in calls.items():
        if params["name"] != "sleep":
            continue
        token = params["_meta"]["progressToken"]
        progress, ended, cancelled = [], None, False
        for way, message in said:
            of = message.get("params", {})
            if way == "out" and message.get("method") == "notifications/cancelled" and of.get("requestId") == identity:
                cancelled = True
            elif way == "in" and message.get("method") == "notifications/progress" and of["progressToken"] == token:
                progress.append(of["progress"])
            elif way == "in" and message.get("id") == identity and "method" not in message:
                ended = "answered"
        if params["arguments"].get("steps") == 3:
            expect("the progress on the wire", [progress, ended], [[1, 2, 3], "answered"])
        else:
            expect("a cancelled call", [cancelled, ended], [True, None])
