//! Owns the lines of a tape as they are read: what each may be, and what is wrong with one that is none. It must not know how a tape is
//! written, nor what a replay does with a line.

use std::time::Duration;

use mcp_wire::{Instant, Json, JsonBuf};
use mcp_wire_driver::server::RpcError;

use super::base64;
use super::script::{self, Op};
use super::tape::Fact;
use super::tape_config::TapeConfig;

/// One line of a tape.
pub(super) enum Entry {
    Config(Box<TapeConfig>),
    Op(Op),
    Overflow(String),
    /// To which of the server's requests that reached a handler, from 1 on, and what.
    Answer(u64, Result<JsonBuf, RpcError>),
    In(Vec<u8>),
    InCut {
        bytes: u64,
        id: Option<String>,
    },
    Out(String),
    Accepted(usize),
    Tick,
    Stderr(String),
    Pid(u32),
    Started,
    Eof,
    StderrEof,
    InputFailed,
    Reaped,
    Fact(Fact),
}

/// Reads one line.
pub(super) fn parse(line: &str) -> Result<(Instant, Entry), String> {
    let json = Json::parse(line).map_err(|error| format!("not JSON: {error}"))?;
    let (mut time, mut value) = (None, None);
    for (name, member) in json.members() {
        if name == "t_us" {
            time = Some(member.deserialize::<u64>().map_err(|_| "\"t_us\" must be a whole number".to_owned())?);
        } else if value.replace((name, member)).is_some() {
            return Err("more than one member beside \"t_us\"".to_owned());
        }
    }
    let Some(time) = time else { return Err("no \"t_us\"".to_owned()) };
    let Some((name, value)) = value else { return Err("nothing beside \"t_us\"".to_owned()) };
    let time = Instant::from_epoch(Duration::from_micros(time));
    Ok((time, entry(&name, value)?))
}

fn get<'a, T: serde::Deserialize<'a>>(name: &str, value: Json<'a>) -> Result<T, String> {
    value.deserialize().map_err(|error| format!("{name:?}: {error}"))
}

fn entry(name: &str, value: Json<'_>) -> Result<Entry, String> {
    #[derive(serde::Deserialize)]
    struct Cut<'a> {
        bytes: u64,
        #[serde(borrow)]
        id: Option<&'a serde_json::value::RawValue>,
    }
    Ok(match name {
        "config" => Entry::Config(get(name, value)?),
        "op" => op(value)?,
        "in" => Entry::In(get::<String>(name, value)?.into_bytes()),
        "in_base64" => match base64::decode(&get::<String>(name, value)?) {
            Some(bytes) => Entry::In(bytes),
            None => return Err("\"in_base64\" is no base64".to_owned()),
        },
        "in_cut" => {
            let Cut { bytes, id } = get(name, value)?;
            Entry::InCut { bytes, id: id.map(|id| id.get().to_owned()).filter(|id| id != "null") }
        }
        "out" => Entry::Out(get(name, value)?),
        "accepted" => Entry::Accepted(get(name, value)?),
        "tick" => Entry::Tick,
        "stderr" => Entry::Stderr(get(name, value)?),
        "pid" => Entry::Pid(get(name, value)?),
        "process" => match value.get() {
            "\"started\"" => Entry::Started,
            "\"eof\"" => Entry::Eof,
            "\"stderr_eof\"" => Entry::StderrEof,
            "\"input_failed\"" => Entry::InputFailed,
            "\"reaped\"" => Entry::Reaped,
            _ => Entry::Fact(get(name, value)?),
        },
        other => return Err(format!("there is no entry {other:?}")),
    })
}

/// A script's operation, or one of those that no script has.
fn op(value: Json<'_>) -> Result<Entry, String> {
    #[derive(serde::Deserialize)]
    struct Overflow {
        key: String,
    }
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        request: u64,
        #[serde(borrow)]
        result: Option<&'a serde_json::value::RawValue>,
        #[serde(borrow)]
        error: Option<Error<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Error<'a> {
        code: i64,
        message: String,
        #[serde(borrow)]
        data: Option<&'a serde_json::value::RawValue>,
    }
    let own = |raw: &serde_json::value::RawValue| JsonBuf::from(Json::from(raw));
    let name = value.members().find(|(name, _)| name == "op").and_then(|(_, name)| name.as_str());
    Ok(match name.as_deref() {
        Some("overflow") => Entry::Overflow(get::<Overflow>("overflow", value)?.key),
        Some("answer") => match get("answer", value)? {
            Answer { request, result: Some(result), error: None } => Entry::Answer(request, Ok(own(result))),
            Answer { request, result: None, error: Some(Error { code, message, data }) } => {
                let mut error = RpcError::new(code, message);
                error.data = data.map(own);
                Entry::Answer(request, Err(error))
            }
            Answer { .. } => return Err("an answer has a \"result\" or an \"error\"".to_owned()),
        },
        _ => Entry::Op(script::parse_op(value.get())?),
    })
}
