//! The tools that ask the client something: what each asks, and what it makes of the answers. How a question travels is `rounds`' business.

use mcp_wire_driver::server::{Call, RpcError};
use serde_json::{Value, json};

use crate::Everything;
use crate::content::text;
use crate::rounds::{Answer, Asked, Given, ask};

pub(crate) const TOOLS: [(&str, &str); 12] = [
    ("test_sampling", "Has the client's model answer the prompt."),
    ("test_elicitation", "Asks the user for a name and an address."),
    ("test_elicitation_sep1034_defaults", "Asks with a default in each field."),
    ("test_elicitation_sep1330_enums", "Asks with each kind of choice."),
    ("test_input_required_result_elicitation", "Asks the user for a name."),
    ("test_input_required_result_sampling", "Asks the client's model."),
    ("test_input_required_result_list_roots", "Asks for the client's roots."),
    ("test_input_required_result_request_state", "Asks, and wants its state back."),
    ("test_input_required_result_multiple_inputs", "Asks three things at once."),
    ("test_input_required_result_multi_round", "Asks twice."),
    ("test_input_required_result_tampered_state", "Asks, and wants its state back unchanged."),
    ("test_input_required_result_capabilities", "Asks what the client says it can answer."),
];

/// The properties of a tool's arguments.
pub(crate) fn arguments(tool: &str) -> Value {
    match tool {
        "test_sampling" => json!({"prompt": {"type": "string"}}),
        "test_elicitation" => json!({"message": {"type": "string"}}),
        _ => json!({}),
    }
}

/// The result of a tool that asks.
pub(crate) async fn call(call: &Call, everything: &Everything, name: &str, params: &Value) -> Result<Value, RpcError> {
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let state = everything.state(params)?;
    let (questions, carries) = match name {
        "test_sampling" => (vec![Asked::sampling("answer", argument("prompt"), 100)], None),
        "test_elicitation" => (vec![details(argument("message"))], None),
        "test_elicitation_sep1034_defaults" => (vec![defaults()], None),
        "test_elicitation_sep1330_enums" => (vec![choices()], None),
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => (vec![name_of_user()], None),
        "test_input_required_result_sampling" => {
            (vec![Asked::sampling("capital_question", "What is the capital of France?", 100)], None)
        }
        "test_input_required_result_list_roots" => (vec![Asked::roots("client_roots")], None),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            (vec![Asked::form("confirm", "Please confirm", "ok", "boolean")], Some("confirm".to_owned()))
        }
        "test_input_required_result_multiple_inputs" => {
            let greeting = Asked::sampling("greeting", "Generate a greeting", 50);
            (vec![name_of_user(), greeting, Asked::roots("client_roots")], Some("three".to_owned()))
        }
        "test_input_required_result_multi_round" => return two_rounds(call, everything, params, state).await,
        "test_input_required_result_capabilities" => {
            let all = [name_of_user(), Asked::sampling("greeting", "Generate a greeting", 50)];
            (all.into_iter().filter(|question| question.can_be_answered(call)).collect(), Some("either".to_owned()))
        }
        _ => return Err(RpcError::invalid_params(format!("Unknown tool: {name}"))),
    };
    let signed = carries.as_deref().map(|carries| everything.sign(carries));
    let answers = match ask(call, params, &questions, signed).await? {
        Answer::Asks(result) => return Ok(result),
        Answer::Given(answers) => answers,
    };
    // A modern client that brings answers brings the state of the round that asked for them.
    if call.legacy_client().is_none() && carries != state {
        return Err(RpcError::invalid_params("Invalid params: requestState is missing, or another tool's"));
    }
    Ok(json!({"content": [text(said(name, &answers))]}))
}

fn said(name: &str, answers: &[Given]) -> String {
    match (name, answers) {
        ("test_sampling", [answer]) => format!("LLM response: {}", answer.said()),
        ("test_elicitation", [answer]) => format!("User response: {}", answer.form()),
        ("test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums", [answer]) => {
            format!("Elicitation completed: {}", answer.form())
        }
        ("test_input_required_result_elicitation" | "test_streaming_elicitation", [answer]) => {
            format!("Hello, {}!", answer.field("name"))
        }
        ("test_input_required_result_sampling", [answer]) => answer.said().to_owned(),
        ("test_input_required_result_list_roots", [answer]) => format!("{} roots", answer.roots()),
        ("test_input_required_result_multiple_inputs", [user, greeting, roots]) => {
            format!("{}: {}, {} roots", user.field("name"), greeting.said(), roots.roots())
        }
        ("test_input_required_result_capabilities", answers) => format!("{} answers", answers.len()),
        _ => "state-ok".to_owned(),
    }
}

/// The first answer is carried to the second round in the state.
async fn two_rounds(
    call: &Call,
    everything: &Everything,
    params: &Value,
    state: Option<String>,
) -> Result<Value, RpcError> {
    let user = match state.as_deref().and_then(|state| state.strip_prefix("two:")) {
        Some(user) => user.to_owned(),
        None => {
            let question = Asked::form("step1", "Step 1: What is your name?", "name", "string");
            match ask(call, params, &[question], Some(everything.sign("one"))).await? {
                Answer::Given(answers) if call.legacy_client().is_some() || state.as_deref() == Some("one") => {
                    answers[0].field("name").to_owned()
                }
                Answer::Given(_) => return Err(RpcError::invalid_params("Invalid params: requestState is missing")),
                Answer::Asks(result) => return Ok(result),
            }
        }
    };
    let question = Asked::form("step2", "Step 2: What is your favorite color?", "color", "string");
    match ask(call, params, &[question], Some(everything.sign(&format!("two:{user}")))).await? {
        Answer::Given(answers) => Ok(json!({"content": [text(format!("{user} likes {}", answers[0].field("color")))]})),
        Answer::Asks(result) => Ok(result),
    }
}

fn name_of_user() -> Asked {
    Asked::form("user_name", "What is your name?", "name", "string")
}

fn form(message: &str, properties: Value, required: &[&str]) -> Asked {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Asked::new("form", "elicitation/create", json!({"message": message, "requestedSchema": schema}))
}

fn details(message: &str) -> Asked {
    let string = json!({"type": "string"});
    form(message, json!({"username": string, "email": string}), &["username", "email"])
}

fn defaults() -> Asked {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    form("Please look at what is filled in", properties, &[])
}

fn choices() -> Asked {
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")},
        ])
    };
    let names = json!(["option1", "option2", "option3"]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": names},
        "titledSingle": {"type": "string", "oneOf": titled("option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": names}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled("choice")}},
    });
    form("Please choose", properties, &[])
}
