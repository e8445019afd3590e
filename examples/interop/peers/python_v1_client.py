"""A client on the Python SDK v1, which prints what it saw. usage: python_v1_client.py legacy SERVER [ARG]..."""

import json
import sys

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

_, COMMAND, *ARGS = sys.argv[1:]
saw = {}
sends, updates = anyio.create_memory_object_stream(16)


async def answer(context, params):
    return types.ElicitResult(action="accept", content={"answer": "Because"})


async def heard(message):
    if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
        sends.send_nowait(str(message.root.params.uri))


async def drive(session):
    async def text(name, arguments, **more):
        return (await session.call_tool(name, arguments, **more)).content[0].text

    opened = await session.initialize()
    saw["version"] = opened.protocolVersion
    saw["server"] = opened.serverInfo.name
    saw["tools"] = [tool.name for tool in (await session.list_tools()).tools]
    saw["sum"] = (await session.call_tool("add", {"a": 40, "b": 2})).structuredContent["sum"]
    steps = []

    async def step(progress, total, message):
        steps.append(progress)

    saw["slept"] = await text("sleep", {"ms": 60, "steps": 3}, progress_callback=step)
    saw["progress"] = steps
    # v1 tells the server nothing when a call is given up: the notification is sent by hand, with the id that the call has.
    with anyio.CancelScope() as scope:
        asleep = session._request_id

        async def enough(progress, total, message):
            cancelled = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=asleep, reason="enough"))
            await session.send_notification(types.ClientNotification(cancelled))
            scope.cancel()

        await text("sleep", {"ms": 600_000, "steps": 1000}, progress_callback=enough)
    saw["cancelled"] = scope.cancelled_caught
    saw["echo"] = await text("echo", {"text": "still here"})
    try:
        await text("fail", {"code": -5, "message": "no"})
    except McpError as error:
        saw["error"] = error.error.code
    saw["answer"] = await text("ask", {"question": "Why?"})
    await session.send_ping()
    await session.subscribe_resource("demo://counter")
    await text("touch", {"uri": "demo://counter"})
    saw["updated"] = await updates.receive()


async def main():
    async with stdio_client(StdioServerParameters(command=COMMAND, args=ARGS)) as (reads, writes):
        async with ClientSession(reads, writes, elicitation_callback=answer, message_handler=heard) as session:
            await drive(session)
    print(json.dumps(saw))


anyio.run(main)
