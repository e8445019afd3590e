"""A client on the Python SDK v2, which prints what it saw. usage: python_v2_client.py modern|auto|legacy SERVER [ARG]..."""

import json
import sys

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

MODE, COMMAND, *ARGS = sys.argv[1:]
saw = {}
sends, updates = anyio.create_memory_object_stream(16)


async def answer(context, params):
    return types.ElicitResult(action="accept", content={"answer": "Because"})


async def heard(message):
    if isinstance(message, types.ResourceUpdatedNotification):
        sends.send_nowait(str(message.params.uri))


async def drive(client):
    async def text(name, arguments, **more):
        return (await client.call_tool(name, arguments, **more)).content[0].text

    saw["version"] = client.protocol_version
    saw["server"] = client.server_info.name if client.server_info else None
    saw["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    saw["sum"] = (await client.call_tool("add", {"a": 40, "b": 2})).structured_content["sum"]
    steps = []

    async def step(progress, total, message):
        steps.append(progress)

    saw["slept"] = await text("sleep", {"ms": 60, "steps": 3}, progress_callback=step)
    saw["progress"] = steps
    with anyio.CancelScope() as scope:

        async def enough(progress, total, message):
            scope.cancel()

        await text("sleep", {"ms": 600_000, "steps": 1000}, progress_callback=enough)
    saw["cancelled"] = scope.cancelled_caught
    saw["echo"] = await text("echo", {"text": "still here"})
    try:
        await text("fail", {"code": -5, "message": "no"})
    except MCPError as error:
        saw["error"] = error.code
    saw["answer"] = await text("ask", {"question": "Why?"})
    if saw["version"] >= "2026":
        async with client.listen(resource_subscriptions=["demo://counter"]) as listen:
            saw["listens"] = listen.honored.resource_subscriptions
            await text("touch", {"uri": "demo://counter"})
            saw["updated"] = (await anext(aiter(listen))).uri
    else:
        await client.send_ping()
        await client.subscribe_resource("demo://counter")
        await text("touch", {"uri": "demo://counter"})
        saw["updated"] = await updates.receive()


async def main():
    server = StdioServerParameters(command=COMMAND, args=ARGS)
    # A version by its name is adopted without asking, which a client for the modern era alone may do.
    mode = "2026-07-28" if MODE == "modern" else MODE
    async with Client(server, mode=mode, elicitation_callback=answer, message_handler=heard) as client:
        await drive(client)
    print(json.dumps(saw))


anyio.run(main)
