//! Owns how the demo server describes itself: capabilities, the list of tools with their schemas. It must not know what a tool does.

use serde_json::{Value, json};

/// The capabilities of the discover result.
pub(super) const CAPABILITIES: &str =
    r#"{"tools":{"listChanged":true},"resources":{"listChanged":false,"subscribe":true},"logging":{}}"#;

const fn tool_names() -> [&'static str; 12] {
    ["echo", "add", "sleep", "log", "print", "spawn_echo", "big", "ask", "fail", "panic", "touch", "exit"]
}

/// Whether there is such a tool.
pub(super) fn has_tool(name: &str) -> bool {
    tool_names().contains(&name)
}

/// The result of `tools/list`.
pub(super) fn tools() -> Value {
    json!({
        "resultType": "complete",
        "tools": tool_names().map(tool),
        "ttlMs": 60_000,
        "cacheScope": "public",
    })
}

fn tool(name: &str) -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let count = json!({"type": "integer", "minimum": 0});
    let (about, properties, required): (&str, Value, &[&str]) = match name {
        "echo" => ("Returns the text.", json!({"text": text}), &["text"]),
        "add" => ("Adds two numbers.", json!({"a": number, "b": number}), &["a", "b"]),
        "sleep" => (
            "Sleeps, reports progress in equal steps, and stops at once when cancelled.",
            json!({
                "ms": {"type": "integer", "minimum": 0, "description": "milliseconds in all"},
                "steps": {"type": "integer", "minimum": 0, "default": 0, "description": "progress notifications"},
                "ignore_cancel": {"type": "boolean", "default": false, "description": "go on sleeping when cancelled"},
            }),
            &["ms"],
        ),
        "log" => (
            "Sends log notifications, when the request asked for that level.",
            json!({
                "count": {"type": "integer", "minimum": 0, "default": 1},
                "level": {
                    "enum": ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"],
                    "default": "info",
                },
            }),
            &[],
        ),
        "print" => (
            "Prints the text to the process's standard output, as a careless library would.",
            json!({"text": text}),
            &["text"],
        ),
        "spawn_echo" => (
            "Runs a child process that prints the text to its inherited standard output.",
            json!({"text": text}),
            &["text"],
        ),
        "big" => ("Returns a text of that many bytes.", json!({"bytes": count}), &["bytes"]),
        "ask" => (
            "Asks the user the question by elicitation, and returns the answer.",
            json!({"question": text}),
            &["question"],
        ),
        "fail" => (
            "Answers with that JSON-RPC error.",
            json!({"code": {"type": "integer"}, "message": text}),
            &["code", "message"],
        ),
        "panic" => ("Panics in the handler; the server lives on.", json!({}), &[]),
        "touch" => (
            "Makes that resource change, so that its subscribers hear of it.",
            json!({"uri": {"type": "string", "format": "uri"}}),
            &["uri"],
        ),
        _ => ("Ends the process at once, answering nothing.", json!({"code": {"type": "integer"}}), &["code"]),
    };
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let mut tool = json!({"name": name, "description": about, "inputSchema": schema});
    if name == "add" {
        tool["outputSchema"] = json!({"type": "object", "properties": {"sum": number}, "required": ["sum"]});
    }
    tool
}
