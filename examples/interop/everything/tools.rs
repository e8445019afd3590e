//! The tools: how they are described, and those that answer at once, report progress, log, or change a list. Those that ask somebody
//! something are in `questions`; this module must not know how they do it.

use std::time::Duration;

use mcp_wire::server::LogLevel;
use mcp_wire_driver::server::{Call, RpcError};
use serde_json::{Value, json};

use crate::content::{audio, image, resource, text};
use crate::{Everything, KEPT_MS, questions};

/// Between two notifications, so that each goes out by itself.
const PAUSE: Duration = Duration::from_millis(50);

const PLAIN: [(&str, &str); 13] = [
    ("test_simple_text", "Returns a text."),
    ("test_image_content", "Returns a picture."),
    ("test_audio_content", "Returns a sound."),
    ("test_embedded_resource", "Returns an embedded resource."),
    ("test_multiple_content_types", "Returns a text, a picture and a resource."),
    ("test_tool_with_logging", "Logs three messages."),
    ("test_tool_with_progress", "Reports progress three times."),
    ("test_error_handling", "Always fails."),
    ("test_missing_capability", "Works only for a client that can sample."),
    ("test_streaming_elicitation", "Reports progress, then asks the user."),
    ("test_logging_tool", "Logs a message, when the request asks for it."),
    ("test_trigger_tool_change", "Tells those who listen that the tools have changed."),
    ("test_trigger_prompt_change", "Tells those who listen that the prompts have changed."),
];

pub(crate) fn list() -> Value {
    let mut tools: Vec<_> = PLAIN
        .iter()
        .chain(&questions::TOOLS)
        .map(|(name, about)| {
            let schema = json!({"type": "object", "properties": questions::arguments(name)});
            json!({"name": name, "description": about, "inputSchema": schema})
        })
        .collect();
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Its schema uses what JSON Schema 2020-12 has.",
        "inputSchema": rich_schema(),
    }));
    json!({"tools": tools, "ttlMs": KEPT_MS, "cacheScope": "public"})
}

/// References, composition and conditions, all of which must arrive as they stand here.
fn rich_schema() -> Value {
    let string = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": string, "city": string},
            },
        },
        "properties": {
            "name": string,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": string,
            "email": string,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) async fn call(call: &Call, everything: &Everything) -> Result<Value, RpcError> {
    let params: Value = call.params()?;
    let Some(name) = params["name"].as_str() else {
        return Err(RpcError::invalid_params("Invalid params: name is missing"));
    };
    let content = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![audio()],
        "test_embedded_resource" => {
            vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_tool_with_logging" => {
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(call, message)?;
                (everything.sleep)(PAUSE).await;
            }
            vec![text("logged three messages")]
        }
        "test_tool_with_progress" => {
            for step in [0.0, 50.0, 100.0] {
                progress(call, step)?;
                (everything.sleep)(PAUSE).await;
            }
            vec![text("reported progress three times")]
        }
        "test_error_handling" => {
            let content = [text("This tool intentionally returns an error for testing")];
            return Ok(json!({"content": content, "isError": true}));
        }
        "test_missing_capability" => {
            call.require_client_capability("sampling")?;
            vec![text("the client can sample")]
        }
        "test_logging_tool" => {
            log(call, "the request asked for this")?;
            vec![text("logged, if it was asked for")]
        }
        "test_trigger_tool_change" => vec![text(format!("{} heard it", everything.publisher.tools_changed()))],
        "test_trigger_prompt_change" => vec![text(format!("{} heard it", everything.publisher.prompts_changed()))],
        "json_schema_2020_12_tool" => vec![text(format!("called with {}", params["arguments"]))],
        _ => {
            if name == "test_streaming_elicitation" {
                progress(call, 50.0)?;
            }
            return questions::call(call, everything, name, &params).await;
        }
    };
    Ok(json!({"content": content}))
}

fn progress(call: &Call, step: f64) -> Result<(), RpcError> {
    let said = call.progress(step, Some(100.0), Some(&format!("{step} of 100")));
    said.map_err(|error| RpcError::internal(error.to_string()))
}

fn log(call: &Call, message: &str) -> Result<(), RpcError> {
    call.log(LogLevel::Info, Some("everything"), message).map_err(|error| RpcError::internal(error.to_string()))
}
