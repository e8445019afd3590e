"""Holds every line of a tape, of both directions, against the official JSON schema of the revision that it was said in."""

import base64
import json
import os
import sys
from pathlib import Path

MODERN, NEWEST_LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/protocolVersion"
# A method whose result has no definition of its own name.
RESULTS = {"ping": "EmptyResult", "logging/setLevel": "EmptyResult", "resources/subscribe": "EmptyResult",
           "resources/unsubscribe": "EmptyResult", "elicitation/create": "ElicitResult"}


class Schemas:
    """The schemas of all revisions, read once."""

    @staticmethod
    def find():
        """The folder with the schemas (schema-REVISION.json), or None. They are not part of this repository: MCP_SCHEMAS names another
        folder than the one that `packages` fills."""
        folder = Path(os.environ.get("MCP_SCHEMAS") or Path(__file__).resolve().parent.parent / ".packages" / "schemas")
        return folder if Path(folder, f"schema-{MODERN}.json").exists() else None

    def __init__(self, folder):
        import jsonschema  # installed by the script, for this alone

        self.check = {}
        self.methods = {}  # (revision, method) -> the definition of its request or notification
        for path in sorted(folder.glob("schema-*.json")):
            revision = path.stem.removeprefix("schema-")
            whole = json.loads(path.read_text(encoding="utf-8"))
            word = "$defs" if "$defs" in whole else "definitions"
            make = jsonschema.validators.validator_for(whole)
            for name, definition in whole[word].items():
                self.check[revision, name] = make({"$ref": f"#/{word}/{name}", word: whole[word]})
                method = definition.get("properties", {}).get("method", {}).get("const")
                if method:
                    self.methods[revision, method] = name

    def wrong(self, revision, name, value):
        """What is wrong with the value, in one line; None if nothing is."""
        errors = list(self.check[revision, name].iter_errors(value))
        if not errors:
            return None
        worst = min(errors, key=lambda error: len(error.absolute_path))
        for inner in worst.context or ():
            worst = max(worst, inner, key=lambda error: len(error.absolute_path))
        return f"{name} of {revision}: at /{'/'.join(map(str, worst.absolute_path))}: {worst.message[:200]}"


def lines(path):
    """(direction, text) of each line that was on the wire, whatever reads it came in."""
    kept = {"in": b"", "out": b""}
    for row in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(row)
        for direction in kept:
            piece = row.get(direction)
            if piece is None and direction + "_base64" in row:
                piece = base64.b64decode(row[direction + "_base64"])
            if piece is None:
                continue
            kept[direction] += piece if isinstance(piece, bytes) else piece.encode()
            *whole, kept[direction] = kept[direction].split(b"\n")
            yield from ((direction, line) for line in whole if line.strip())


def check(schemas, path):
    """(messages seen, [(who said it, what is wrong with it)]) of one tape."""
    legacy, asked, seen, wrong = None, {}, 0, []
    for direction, line in lines(path):
        who = "client" if direction == "out" else "server"
        try:
            message = json.loads(line)
        except ValueError:
            wrong.append((who, f"no JSON: {line[:80]!r}"))
            continue
        for message in message if isinstance(message, list) else [message]:
            seen += 1
            method, identity = message.get("method"), json.dumps(message.get("id"))
            params = message.get("params") or {}
            if method == "initialize":
                # A version that knows no handshake is asked for in the words of the newest that does.
                asks = params.get("protocolVersion")
                legacy = asks if (asks, "initialize") in schemas.methods else NEWEST_LEGACY
            if method is not None:
                claimed = (params.get("_meta") or {}).get(META)
                # Notifications make no claim: in a session they are the session's, unless only a modern client can have asked for them.
                revision = claimed or legacy or MODERN
                if "io.modelcontextprotocol/subscriptionId" in (params.get("_meta") or {}):
                    revision = MODERN
                if "id" in message:
                    asked[direction, identity] = (method, revision)
                name = schemas.methods.get((revision, method))
                found = [schemas.wrong(revision, "JSONRPCMessage", message)]
                found.append(schemas.wrong(revision, name, message) if name else f"{method} is unknown in {revision}")
            else:
                back = "in" if direction == "out" else "out"
                method, revision = asked.get((back, identity), (None, legacy or MODERN))
                if method == "initialize" and "result" in message:
                    legacy = revision = message["result"].get("protocolVersion", legacy)
                elif method == "server/discover" and "error" in message and message["error"].get("code") != -32022:
                    # Who does not know the method speaks an earlier revision; which one is not said yet.
                    revision = NEWEST_LEGACY
                found = [schemas.wrong(revision, "JSONRPCMessage", message)]
                if "result" in message and method:
                    found.append(schemas.wrong(revision, result_name(schemas, revision, method, message["result"]), message["result"]))
                elif "result" in message:
                    found.append(f"a result for {identity}, which nobody asked for")
            wrong.extend((who, text) for text in found if text)
    return seen, wrong


def result_name(schemas, revision, method, result):
    if result.get("resultType") == "input_required":
        return "InputRequiredResult"
    if "task" in result and (revision, "CreateTaskResult") in schemas.check:
        return "CreateTaskResult"
    request = schemas.methods.get((revision, method), "Request")
    name = RESULTS.get(method, request.removesuffix("Request") + "Result")
    return name if (revision, name) in schemas.check else "Result"


if __name__ == "__main__":
    found = Schemas.find() or sys.exit("MCP_SCHEMAS names no folder with the schemas")
    for tape in map(Path, sys.argv[1:]):
        print(tape, *check(Schemas(found), tape))
