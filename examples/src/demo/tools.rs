//! Owns what the demo tools do. It must not know how they are described, nor which runtime they run on.

use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_wire::JsonBuf;
use mcp_wire::server::LogLevel;
use mcp_wire_driver::server::{Call, Publisher, RpcError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::describe::has_tool;
use super::resources::Resources;
use super::serve::{Host, QUEUE_LIMIT};

/// The longest text that `big` makes: with what stands around it, it fits the queue.
const BIG_LIMIT: usize = QUEUE_LIMIT - (64 << 10);

/// What `ask` gives to the client to carry to the second round.
const ASK_STATE: &str = "ask/1";

/// The params of `tools/call`, the arguments not read yet.
#[derive(Deserialize)]
struct Params {
    name: String,
    arguments: Option<Box<RawValue>>,
    #[serde(rename = "inputResponses")]
    input_responses: Option<Value>,
    #[serde(rename = "requestState")]
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Arguments that do not fit are the caller's to mend, so a model gets them as a result that it can read, not as a protocol error.
enum Wrong {
    Arguments(String),
    Rpc(RpcError),
}

impl From<RpcError> for Wrong {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// The result of a tool, its members in the order in which they leave.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    result_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<[Block; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'static str>,
}

#[derive(Serialize)]
struct Block {
    r#type: &'static str,
    text: String,
}

type Outcome = Result<ToolResult, Wrong>;

fn text(text: impl Into<String>) -> ToolResult {
    ToolResult {
        result_type: "complete",
        content: Some([Block { r#type: "text", text: text.into() }]),
        structured_content: None,
        is_error: false,
        input_requests: None,
        request_state: None,
    }
}

impl Params {
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        let arguments = self.arguments.as_ref().map_or("{}", |raw| raw.get());
        serde_json::from_str(arguments)
            .map_err(|error| Wrong::Arguments(format!("Invalid arguments for {}: {error}", self.name)))
    }
}

/// Performs `tools/call`.
pub(super) async fn call<H: Host>(
    call: &Call,
    host: &H,
    resources: &Resources,
    publisher: &Publisher,
) -> Result<JsonBuf, RpcError> {
    let params: Params = call.params()?;
    if !has_tool(&params.name) {
        return Err(RpcError::invalid_params(format!("Unknown tool: {}", params.name)));
    }
    let outcome = match &*params.name {
        "echo" => params.arguments().map(|Text { text: it }| text(it)),
        "add" => add(&params),
        "sleep" => sleep(call, host, &params).await,
        "log" => log(call, &params),
        "print" => params.arguments().map(|Text { text: it }| {
            println!("{it}");
            text("printed")
        }),
        "spawn_echo" => spawn_echo(host, &params).await,
        "big" => big(&params),
        "ask" => ask(call, host, &params).await,
        "fail" => fail(&params),
        "panic" => panic!("the tool `panic` was called"),
        "touch" => touch(&params, resources, publisher),
        _ => exit(&params),
    };
    match outcome {
        Ok(result) => Ok(JsonBuf::new(&result)?),
        Err(Wrong::Rpc(error)) => Err(error),
        Err(Wrong::Arguments(what)) => Ok(JsonBuf::new(&ToolResult { is_error: true, ..text(what) })?),
    }
}

fn add(params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Add {
        a: serde_json::Number,
        b: serde_json::Number,
    }
    let Add { a, b } = params.arguments()?;
    // Integers stay integers as long as their sum fits.
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b)).map(serde_json::Number::from);
    let broken = || serde_json::Number::from_f64(a.as_f64()? + b.as_f64()?);
    let Some(sum) = whole.or_else(broken) else {
        return Err(Wrong::Arguments("Invalid arguments for add: the sum is no finite number".to_owned()));
    };
    Ok(ToolResult { structured_content: Some(json!({"sum": sum})), ..text(sum.to_string()) })
}

async fn sleep<H: Host>(call: &Call, host: &H, params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Sleep {
        ms: u64,
        #[serde(default)]
        steps: u32,
        #[serde(default)]
        ignore_cancel: bool,
    }
    let Sleep { ms, steps, ignore_cancel } = params.arguments()?;
    let (all, total) = (Duration::from_millis(ms), f64::from(steps));
    let mut slept = Duration::ZERO;
    for step in 1..=steps.max(1) {
        let until = if steps == 0 { all } else { all.mul_f64(f64::from(step) / total) };
        let pause = host.sleep(until.saturating_sub(slept));
        if ignore_cancel {
            pause.await;
        } else if host.first(call.cancelled(), pause).await {
            // Nobody reads it: after a cancellation nothing is written.
            return Ok(text("cancelled"));
        }
        slept = until;
        if steps > 0 {
            // Serving has ended if this fails, and then the answer fails too.
            let _ = call.progress(f64::from(step), Some(total), Some(&format!("step {step} of {steps}")));
        }
    }
    Ok(text(format!("slept {ms} ms")))
}

fn log(call: &Call, params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Log {
        #[serde(default = "one")]
        count: u32,
        #[serde(default = "info")]
        level: String,
    }
    const fn one() -> u32 {
        1
    }
    fn info() -> String {
        "info".to_owned()
    }
    let Log { count, level } = params.arguments()?;
    let Some(level) = LogLevel::parse(&level) else {
        return Err(Wrong::Arguments(format!("Invalid arguments for log: no level {level:?}")));
    };
    for n in 1..=count {
        // What is shed under load is lost on purpose.
        let _ = call.log(level, Some("demo"), &format!("message {n}"));
    }
    Ok(text(format!("logged {count}")))
}

async fn spawn_echo<H: Host>(host: &H, params: &Params) -> Outcome {
    let Text { text: it } = params.arguments()?;
    let run = move || echo(&it).stdin(Stdio::null()).status();
    match host.blocking(run).await {
        Ok(status) if status.success() => Ok(text("spawned")),
        Ok(status) => Err(RpcError::internal(format!("echo ended with {status}")).into()),
        Err(error) => Err(RpcError::internal(format!("echo could not be run: {error}")).into()),
    }
}

#[cfg(not(windows))]
fn echo(text: &str) -> Command {
    let mut echo = Command::new("echo");
    echo.arg(text);
    echo
}

/// The word is one of the command interpreter's here. It gets the text as a variable, of which it takes nothing for a command.
#[cfg(windows)]
fn echo(text: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.args(["/D", "/V:ON", "/C", "echo.!MCP_DEMO_TEXT!"]).env("MCP_DEMO_TEXT", text);
    shell
}

fn big(params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Big {
        bytes: usize,
    }
    let Big { bytes } = params.arguments()?;
    if bytes > BIG_LIMIT {
        return Err(Wrong::Arguments(format!("Invalid arguments for big: at most {BIG_LIMIT} bytes")));
    }
    Ok(text("x".repeat(bytes)))
}

/// A result that takes two rounds: the first asks for input, the second brings it. A legacy client is asked while its request waits.
async fn ask<H: Host>(call: &Call, host: &H, params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Ask {
        question: String,
    }
    let Ask { question } = params.arguments()?;
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    if let Some(client) = call.legacy_client() {
        call.require_client_capability("elicitation")?;
        let asks = json!({"message": question, "requestedSchema": schema});
        // A person may take as long as they like; who is tired of waiting cancels the call.
        let request = client.request("elicitation/create", &asks).timeout(Duration::MAX);
        let mut response = None;
        if host.first(call.cancelled(), async { response = Some(request.await) }).await {
            return Ok(text("cancelled"));
        }
        return match response {
            Some(Ok(response)) => {
                answered(&response.as_json().deserialize().map_err(RpcError::from)?, "The client's answer")
            }
            Some(Err(error)) => Err(RpcError::internal(error.to_string()).into()),
            None => Err(RpcError::internal("Internal error").into()),
        };
    }
    let Some(responses) = &params.input_responses else {
        call.require_client_capability("elicitation")?;
        let asks = json!({"mode": "form", "message": question, "requestedSchema": schema});
        return Ok(ToolResult {
            result_type: "input_required",
            content: None,
            input_requests: Some(json!({"answer": {"method": "elicitation/create", "params": asks}})),
            request_state: Some(ASK_STATE),
            ..text("")
        });
    };
    if params.request_state.as_deref() != Some(ASK_STATE) {
        return Err(RpcError::invalid_params("Invalid params: requestState is not the one that was given").into());
    }
    answered(&responses["answer"], "Invalid params: inputResponses")
}

/// What the user answered; `from` has it.
fn answered(response: &Value, from: &str) -> Outcome {
    match (response["action"].as_str(), &response["content"]["answer"]) {
        (Some("accept"), Value::String(answer)) => Ok(text(answer.as_str())),
        (Some(action @ ("decline" | "cancel")), _) => Ok(text(format!("no answer: {action}"))),
        _ => Err(RpcError::invalid_params(format!("{from} has no answer to the question")).into()),
    }
}

fn fail(params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Fail {
        code: i64,
        message: String,
    }
    let Fail { code, message } = params.arguments()?;
    Err(RpcError::new(code, message).into())
}

fn touch(params: &Params, resources: &Resources, publisher: &Publisher) -> Outcome {
    #[derive(Deserialize)]
    struct Touch {
        uri: String,
    }
    let Touch { uri } = params.arguments()?;
    resources.touch(&uri);
    let told = publisher.resource_updated(&uri);
    Ok(text(format!("touched; {told} listening")))
}

fn exit(params: &Params) -> Outcome {
    #[derive(Deserialize)]
    struct Exit {
        code: i32,
    }
    let Exit { code } = params.arguments()?;
    std::process::exit(code)
}
