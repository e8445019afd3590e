"""Our client, `mcp-call`, against the servers of others: which servers there are, what each is asked, and what it must answer."""

import json
import re
from pathlib import Path

from cell import Unexpected, expect, folder, run

LEGACY, MODERN = "2025-11-25", "2026-07-28"
RUNTIMES = ("tokio", "smol", "poll")


def request(key, method, params=None, wait=True):
    line = {"op": "request", "key": key, "method": method}
    if params is not None:
        line["params"] = params
    return [line, {"op": "wait", "key": key}] if wait else [line]


def tool(key, name, arguments=None, wait=True, **more):
    return request(key, "tools/call", {"name": name, "arguments": arguments or {}, **more}, wait)


class Seen:
    """The events of one run, in order."""

    def __init__(self, events):
        self.events = events

    def all(self, kind, **match):
        return [event for event in self.events
                if event["event"] == kind and all(event.get(key) == value for key, value in match.items())]

    def one(self, kind, **match):
        found = self.all(kind, **match)
        if len(found) != 1:
            raise Unexpected(f"{len(found)} events {kind} {match}, one was expected; all: {json.dumps(self.events)[:1500]}")
        return found[0]

    def result(self, key):
        return self.one("result", key=key)["result"]

    def text(self, key):
        return self.result(key)["content"][0]["text"]

    def progress(self, key):
        return [note["params"]["progress"] for note in self.all("notification", key=key, method="notifications/progress")]


STATE = "state “1”/\\\n"
ANSWERS = {"name": {"action": "accept", "content": {"name": "Ada"}}, "where": {"roots": [{"uri": "file:///a%20b"}]}}


class Small:
    """The small servers in `peers`, one for each SDK, with the same tools."""

    def __init__(self, extra=(), unknown=-32602, answers_cancelled=False, end=({"code": 0}, "none")):
        self.extra, self.unknown, self.end = list(extra), unknown, list(end)
        self.dropped = [("late_response", 0)] if answers_cancelled else []

    def script(self, era):
        steps = [
            *request("list", "tools/list"), *tool("add", "add", {"a": 40, "b": 2}), *tool("steps", "steps"),
            *tool("nope", "nope"),
            # That the echo is answered shows that the request before it has arrived.
            *tool("hang", "hang", wait=False), *tool("echo", "echo", {"text": "still “here”\n"}),
            {"op": "cancel", "key": "hang", "reason": "enough"}, *tool("after", "echo", {"text": "after"}),
            {"op": "wait_event", "event": "stderr"},
        ]
        if "ask" in self.extra:
            steps += tool("ask", "ask")
        if era == "modern":
            steps += tool("asks", "input")
            steps += tool("answered", "input", requestState=STATE, inputResponses=ANSWERS)
            # One answer of two, and a state that is another's.
            steps += tool("half", "input", requestState=STATE, inputResponses={"name": ANSWERS["name"]})
            steps += tool("tampered", "input", requestState=STATE + " ", inputResponses=ANSWERS)
            steps += [{"op": "listen", "key": "changes", "filter": {"toolsListChanged": True}}, {"op": "wait", "key": "changes"}]
        steps += tool("change", "change")
        # Three of progress, and the one of the change.
        steps += [{"op": "wait_event", "event": "notification"}] * 4
        return [*steps, {"op": "close"}]

    def check(self, seen, era):
        names = ["echo", "add", "steps", "hang", "change", *self.extra]
        expect("the tools", [tool["name"] for tool in seen.result("list")["tools"]], names)
        expect("the sum", seen.result("add")["structuredContent"], {"sum": 42})
        expect("the progress", seen.progress("steps"), [1, 2, 3])
        expect("the last of progress", seen.text("steps"), "done")
        if self.unknown is None:
            expect("a tool that is not there", seen.result("nope")["isError"], True)
        else:
            expect("a tool that is not there", seen.one("error", key="nope")["error"]["code"], self.unknown)
        expect("the echo", [seen.text("echo"), seen.text("after")], ["still “here”\n", "after"])
        expect("the cancelled call", seen.one("failed", key="hang")["cause"], "cancelled")
        expect("what the server says of it", [line["line"] for line in seen.all("stderr") if "hang" in line["line"]],
               ["hang was cancelled"])
        if "ask" in self.extra:
            expect("a question without a handler", seen.one("server_request")["method"], "roots/list")
            expect("what the server made of the refusal", seen.text("ask"), "refused -32601")
        if era == "modern":
            for key in ("asks", "half"):
                asks = seen.result(key)
                expect("what is asked", [asks["resultType"], asks["requestState"], sorted(asks["inputRequests"])],
                       ["input_required", STATE, ["name", "where"]])
                expect("the methods", [asks["inputRequests"][of]["method"] for of in ("name", "where")],
                       ["elicitation/create", "roots/list"])
                asks = asks["inputRequests"]["name"]["params"]
                expect("the question", [asks["message"], asks["requestedSchema"]["required"]], ["Who are you?", ["name"]])
            expect("what the server made of the answers", seen.text("answered"), "Ada in file:///a%20b")
            expect("another state", seen.one("error", key="tampered")["error"]["code"], -32602)
            expect("the acknowledged filter", seen.one("acknowledged")["notifications"], {"toolsListChanged": True})
        key = "changes" if era == "modern" else None
        seen.one("notification", key=key, method="notifications/tools/list_changed")

    status = 4  # a call was cancelled


class Everything:
    """The published reference server with a tool for everything."""

    end, status, dropped = [{"code": 0}, "none"], 4, []

    def script(self, era):
        return [
            *request("list", "tools/list"), *tool("echo", "echo", {"message": "hi"}), *tool("sum", "get-sum", {"a": 40, "b": 2}),
            *tool("long", "trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
            *request("read", "resources/read", {"uri": "demo://resource/dynamic/text/7"}),
            *request("prompt", "prompts/get", {"name": "simple-prompt"}),
            *tool("nope", "nope"),
            # It works on though it is cancelled, and ends only then: not for longer than the grace.
            *tool("hang", "trigger-long-running-operation", {"duration": 1, "steps": 1}, wait=False),
            *tool("again", "echo", {"message": "still here"}), {"op": "cancel", "key": "hang", "reason": "enough"},
            *tool("after", "echo", {"message": "after"}), {"op": "close"},
        ]

    def check(self, seen, era):
        names = {tool["name"] for tool in seen.result("list")["tools"]}
        expect("tools that are missing", sorted({"echo", "get-sum", "get-tiny-image", "gzip-file-as-resource"} - names), [])
        expect("the echoes", [seen.text(key) for key in ("echo", "again", "after")], ["Echo: hi", "Echo: still here", "Echo: after"])
        expect("the sum", seen.text("sum"), "The sum of 40 and 2 is 42.")
        expect("the progress", seen.progress("long"), [1, 2, 3])
        expect("the resource", seen.result("read")["contents"][0]["uri"], "demo://resource/dynamic/text/7")
        expect("the prompt", seen.result("prompt")["messages"][0]["role"], "user")
        expect("a tool that is not there", seen.result("nope")["isError"], True)
        expect("the cancelled call", seen.one("failed", key="hang")["cause"], "cancelled")


class Memory:
    """The published server with a graph of knowledge."""

    end, status, dropped = [{"code": 0}, "none"], 0, []

    def script(self, era):
        entity = {"name": "mcp-wire", "entityType": "library", "observations": ["bounded"]}
        return [*request("list", "tools/list"), *tool("create", "create_entities", {"entities": [entity]}),
                *tool("search", "search_nodes", {"query": "bounded"}), *tool("graph", "read_graph"), {"op": "close"}]

    def check(self, seen, era):
        names = {tool["name"] for tool in seen.result("list")["tools"]}
        expect("tools that are missing", sorted({"create_entities", "read_graph", "search_nodes"} - names), [])
        for key in ("search", "graph"):
            expect(key, [entity["name"] for entity in json.loads(seen.text(key))["entities"]], ["mcp-wire"])


class Time:
    """The published server that knows the time."""

    end, status, dropped = [{"code": 0}, "none"], 0, []

    def script(self, era):
        there = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        return [*request("list", "tools/list"), *tool("now", "get_current_time", {"timezone": "Asia/Tokyo"}),
                *tool("there", "convert_time", there), {"op": "close"}]

    def check(self, seen, era):
        names = {tool["name"] for tool in seen.result("list")["tools"]}
        expect("the tools", sorted(names), ["convert_time", "get_current_time"])
        now, there = json.loads(seen.text("now")), json.loads(seen.text("there"))
        expect("the zone", now["timezone"], "Asia/Tokyo")
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+09:00", now["datetime"]):
            raise Unexpected(f"no time in Tokyo: {now}")
        expect("the difference", [there["time_difference"], there["target"]["datetime"][11:16]], ["+9.0h", "21:00"])


class Server:
    """A row: how the server is started, the era that our client is told and the one it must come to."""

    def __init__(self, name, command, play, era, asked="auto"):
        self.name, self.command, self.play, self.era, self.asked = name, command, play, era, asked


def servers(places):
    node, one, two = places.node, places.python_v1, places.python_v2
    return [
        Server("rmcp, modern", [places.example("rmcp_server")], Small(["input"], end=({"signal": 15}, "terminate")), "modern"),
        Server("rmcp, legacy", [places.example("rmcp_server")], Small(["input"]), "legacy", "legacy"),
        Server("TypeScript SDK v2, modern", [node, places.peer("typescript_v2_server.mjs"), "modern"], Small(["input"]), "modern"),
        Server("TypeScript SDK v2, dual", [node, places.peer("typescript_v2_server.mjs"), "dual"], Small(["input"]), "modern"),
        Server("TypeScript SDK v2, dual, asked for legacy", [node, places.peer("typescript_v2_server.mjs"), "dual"], Small(["input"]), "legacy", "legacy"),
        Server("TypeScript SDK v2, legacy", [node, places.peer("typescript_v2_server.mjs"), "legacy"], Small(["input"]), "legacy"),
        Server("TypeScript SDK v1", [node, places.peer("typescript_v1_server.mjs")], Small(["ask"]), "legacy"),
        Server("Python SDK v2", [two, places.peer("python_v2_server.py")], Small(["input"]), "modern"),
        Server("Python SDK v2, asked for legacy", [two, places.peer("python_v2_server.py")], Small(["input"]), "legacy", "legacy"),
        Server("Python SDK v1", [one, places.peer("python_v1_server.py")], Small(["ask"], unknown=None, answers_cancelled=True), "legacy"),
        Server("server-everything", [node, places.package("server-everything", "dist/index.js")], Everything(), "legacy"),
        Server("server-memory", [node, places.package("server-memory", "dist/index.js")], Memory(), "legacy"),
        Server("mcp-server-time on v2", [two, "-m", "mcp_server_time"], Time(), "modern"),
        Server("mcp-server-time on v1", [one, "-m", "mcp_server_time"], Time(), "legacy"),
    ]


def cell(places, checker, server, runtime):
    with folder() as scratch:
        tape = Path(scratch, "cell.tape")
        script = "".join(json.dumps(line) + "\n" for line in server.play.script(server.era))
        command = [places.program("mcp-call"), "--json", "--runtime", runtime, "--era", server.asked, "--progress", "--stderr", "events",
                   "--timeout", "30000", "--tape", str(tape), "--script", "-"]
        if server.era == "modern":
            command += ["--capabilities", '{"elicitation":{},"roots":{}}']
        command += ["--", *server.command]
        status, out, err = run(command, script, env={**places.env, "MEMORY_FILE_PATH": str(Path(scratch, "memory.jsonl"))})
        try:
            seen = Seen([json.loads(line) for line in out.splitlines()])
        except ValueError:
            raise Unexpected(f"output that is no JSON: {out[:300]!r}") from None
        expect("the exit status", [status, err[-500:] if status != server.play.status else ""], [server.play.status, ""])
        version = MODERN if server.era == "modern" else LEGACY
        era = seen.one("era")
        expect("the era", [era["era"], era["version"]], [server.era, version])
        server.play.check(seen, server.era)
        dropped = [(event["reason"], event["code"]) for event in seen.all("dropped")]
        expect("what was dropped", dropped, server.play.dropped)
        closed = seen.one("closed")
        expect("the end", [closed["exit"], closed["escalation"]], server.play.end)
        checker.tape(tape)
        replay(places, tape, out)


def replay(places, tape, out):
    """The tape says it all again, with no process: the same events but for the standard error's, which may stand elsewhere."""
    status, again, err = run([places.program("mcp-call"), "--json", "--replay", str(tape)])
    if status == 2:
        raise Unexpected(f"the tape is not readable: {err[:300]}")
    kept = [line for line in out.splitlines() if '"event":"stderr"' not in line]
    expect("a replay of the tape", [line for line in again.splitlines() if '"event":"stderr"' not in line], kept)
