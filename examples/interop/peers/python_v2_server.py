"""A server on the Python SDK v2, which serves both eras."""

import sys

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

bus = InMemorySubscriptionBus()


def tool(name, **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}, "required": list(properties)}
    return types.Tool(name=name, description=name, input_schema=schema)


TOOLS = [tool("echo", text="string"), tool("add", a="number", b="number"), tool("steps"), tool("hang"), tool("change"), tool("input")]

# Of the modern era. What comes back is checked to the letter.
STATE = "state “1”/\\\n"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASKS = types.InputRequiredResult(
    input_requests={
        "name": types.ElicitRequest(params=types.ElicitRequestFormParams(message="Who are you?", requested_schema=NAME)),
        "where": types.ListRootsRequest(),
    },
    request_state=STATE,
)


def text(text, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


async def list_tools(context, params):
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(context, params):
    arguments = params.arguments or {}
    match params.name:
        case "echo":
            return text(arguments["text"])
        case "add":
            total = arguments["a"] + arguments["b"]
            return text(str(total), structured_content={"sum": total})
        case "steps":
            for step in (1, 2, 3):
                await context.session.report_progress(step, 3)
            return text("done")
        case "hang":
            try:
                await anyio.sleep_forever()
            finally:
                print("hang was cancelled", file=sys.stderr, flush=True)
        case "change":
            if context.protocol_version < "2026":
                await context.session.send_tool_list_changed()
            else:
                await bus.publish(ToolsListChanged())
            return text("changed")
        case "input":
            given = params.input_responses or {}
            if given.keys() < {"name", "where"}:
                return ASKS
            if params.request_state != STATE:
                raise MCPError(code=-32602, message="another state")
            return text(f"{given['name'].content['name']} in {given['where'].roots[0].uri}")
    raise MCPError(code=-32602, message=f"no tool {params.name}")


async def main():
    server = Server(
        "python-v2", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(bus)
    )
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


anyio.run(main)
