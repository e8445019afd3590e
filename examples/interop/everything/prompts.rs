//! The prompts, and the completion of their arguments. It must not know how a question reaches the user.

use mcp_wire_driver::server::{Call, RpcError};
use serde_json::{Value, json};

use crate::KEPT_MS;
use crate::content::{image, resource, text};
use crate::rounds::{Answer, Asked, ask};

pub(crate) fn list() -> Value {
    let argument = |name: &str, about: &str| json!({"name": name, "description": about, "required": true});
    json!({
        "prompts": [
            {"name": "test_simple_prompt", "description": "A prompt without arguments."},
            {
                "name": "test_prompt_with_arguments",
                "description": "A prompt with two arguments.",
                "arguments": [argument("arg1", "The first."), argument("arg2", "The second.")],
            },
            {
                "name": "test_prompt_with_embedded_resource",
                "description": "A prompt that embeds a resource.",
                "arguments": [argument("resourceUri", "Of the resource.")],
            },
            {"name": "test_prompt_with_image", "description": "A prompt with a picture."},
            {"name": "test_input_required_result_prompt", "description": "A prompt that asks the user first."},
        ],
        "ttlMs": KEPT_MS,
        "cacheScope": "public",
    })
}

pub(crate) async fn get(call: &Call) -> Result<Value, RpcError> {
    let params: Value = call.params()?;
    let argument = |name: &str| {
        let missing = || RpcError::invalid_params(format!("Invalid params: the prompt wants the argument {name}"));
        params["arguments"][name].as_str().ok_or_else(missing)
    };
    let contents = match params["name"].as_str() {
        Some("test_simple_prompt") => vec![text("This is a simple prompt for testing.")],
        Some("test_prompt_with_arguments") => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        Some("test_prompt_with_embedded_resource") => vec![
            resource(argument("resourceUri")?, "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        Some("test_prompt_with_image") => vec![image(), text("Please analyze the image above.")],
        Some("test_input_required_result_prompt") => {
            let question = Asked::form("user_context", "What context should the prompt use?", "context", "string");
            match ask(call, &params, &[question], None).await? {
                Answer::Asks(result) => return Ok(result),
                Answer::Given(answers) => {
                    vec![text(format!("Prompt with context: {}", answers[0].field("context")))]
                }
            }
        }
        _ => return Err(RpcError::invalid_params(format!("Unknown prompt: {}", params["name"]))),
    };
    let messages: Vec<_> = contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(json!({"messages": messages}))
}

pub(crate) fn complete(call: &Call) -> Result<Value, RpcError> {
    let params: Value = call.params()?;
    let Some(begun) = params["argument"]["value"].as_str() else {
        return Err(RpcError::invalid_params("Invalid params: argument.value is missing"));
    };
    let known = ["paris", "park", "party", "test1", "test2"];
    let values: Vec<_> = known.into_iter().filter(|value| value.starts_with(begun)).collect();
    Ok(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
}
