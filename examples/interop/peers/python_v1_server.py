"""A server on the Python SDK v1, which knows the handshake only."""

import sys

import anyio
from mcp import McpError, types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

server = Server("python-v1", version="1.0.0")


def tool(name, **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}, "required": list(properties)}
    return types.Tool(name=name, description=name, inputSchema=schema)


TOOLS = [tool("echo", text="string"), tool("add", a="number", b="number"), tool("steps"), tool("hang"), tool("change"), tool("ask")]


@server.list_tools()
async def list_tools():
    return TOOLS


def text(text):
    return [types.TextContent(type="text", text=text)]


@server.call_tool()
async def call_tool(name, arguments):
    context = server.request_context
    match name:
        case "echo":
            return text(arguments["text"])
        case "add":
            total = arguments["a"] + arguments["b"]
            return text(str(total)), {"sum": total}
        case "steps":
            token = context.meta.progressToken if context.meta else None
            for step in (1, 2, 3) if token is not None else ():
                await context.session.send_progress_notification(token, step, 3)
            return text("done")
        case "hang":
            try:
                await anyio.sleep_forever()
            finally:
                print("hang was cancelled", file=sys.stderr, flush=True)
        case "change":
            await context.session.send_tool_list_changed()
            return text("changed")
        case "ask":
            # A question that the client has no handler for: it must be refused, and the session must live on.
            try:
                return text(str((await context.session.list_roots()).roots))
            except McpError as error:
                return text(f"refused {error.error.code}")
    raise ValueError(f"no tool {name}")


async def main():
    async with stdio_server() as (reads, writes):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(reads, writes, options)


anyio.run(main)
