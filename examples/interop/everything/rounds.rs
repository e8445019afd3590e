//! How a question reaches the user and its answer comes back: in the modern era by a result that asks and the same request once more, in the
//! legacy era by a request of the server's while the call waits. It must not know what is asked.

use std::hash::BuildHasher;
use std::time::Duration;

use mcp_wire_driver::server::{Call, RpcError};
use serde_json::{Map, Value, json};

use crate::Everything;

/// A question, under the key that its answer comes back with.
pub(crate) struct Asked {
    key: &'static str,
    method: &'static str,
    params: Value,
}

impl Asked {
    pub(crate) fn new(key: &'static str, method: &'static str, params: Value) -> Self {
        Self { key, method, params }
    }

    /// A form with one field.
    pub(crate) fn form(key: &'static str, message: &str, field: &str, kind: &str) -> Self {
        let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
        Self::new(key, "elicitation/create", json!({"message": message, "requestedSchema": schema}))
    }

    pub(crate) fn sampling(key: &'static str, prompt: &str, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        Self::new(key, "sampling/createMessage", json!({"messages": [message], "maxTokens": max_tokens}))
    }

    pub(crate) fn roots(key: &'static str) -> Self {
        Self::new(key, "roots/list", json!({}))
    }

    /// The capability that a client declares if it can answer.
    fn capability(&self) -> &'static str {
        match self.method {
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            _ => "sampling",
        }
    }

    pub(crate) fn can_be_answered(&self, call: &Call) -> bool {
        call.has_client_capability(self.capability())
    }

    /// Whether a response is what this question asks for, and not merely JSON.
    fn is_answered_by(&self, response: &Value) -> bool {
        match self.method {
            "elicitation/create" => match response["action"].as_str() {
                Some("accept") => response["content"].is_object(),
                Some("decline" | "cancel") => true,
                _ => false,
            },
            "roots/list" => response["roots"].is_array(),
            _ => response["role"].is_string() && !response["content"].is_null(),
        }
    }
}

/// What came of asking.
pub(crate) enum Answer {
    /// This result asks; the request comes again with the answers.
    Asks(Value),
    /// The answers, in the order of the questions.
    Given(Vec<Given>),
}

/// One answer.
pub(crate) struct Given(Value);

impl Given {
    /// A field of the form that was filled in; empty, if the user would not.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.0["content"][name].as_str().unwrap_or_default()
    }

    /// What the model said.
    pub(crate) fn said(&self) -> &str {
        self.0["content"]["text"].as_str().unwrap_or("nothing that is text")
    }

    pub(crate) fn roots(&self) -> usize {
        self.0["roots"].as_array().map_or(0, Vec::len)
    }

    /// What the user did with a form, and all that stands in it.
    pub(crate) fn form(&self) -> String {
        let action = self.0["action"].as_str().unwrap_or_default();
        let content = self.0.get("content").map_or_else(|| "{}".to_owned(), ToString::to_string);
        format!("action={action}, content={content}")
    }
}

/// Asks, or takes the answers that the request brings. Answers to nothing that was asked are ignored; one that is missing is asked for again.
pub(crate) async fn ask(
    call: &Call,
    params: &Value,
    questions: &[Asked],
    state: Option<String>,
) -> Result<Answer, RpcError> {
    for question in questions {
        call.require_client_capability(question.capability())?;
    }
    if let Some(client) = call.legacy_client() {
        let mut answers = Vec::new();
        for question in questions {
            // A person may take as long as they like; who is tired of waiting cancels the call.
            let answer = client.request(question.method, &question.params).timeout(Duration::MAX).await;
            let answer = answer.map_err(|error| RpcError::internal(error.to_string()))?;
            answers.push(Given(answer.as_json().deserialize().map_err(RpcError::from)?));
        }
        return Ok(Answer::Given(answers));
    }
    let given = match params.get("inputResponses") {
        None => &Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(RpcError::invalid_params("Invalid params: inputResponses is no object")),
    };
    let mut answers = Vec::new();
    for question in questions {
        match given.get(question.key) {
            None => {}
            Some(answer) if question.is_answered_by(answer) => answers.push(Given(answer.clone())),
            Some(_) => {
                let what = format!("Invalid params: {} is no answer to {}", question.key, question.method);
                return Err(RpcError::invalid_params(what));
            }
        }
    }
    if answers.len() == questions.len() {
        return Ok(Answer::Given(answers));
    }
    let asks: Map<_, _> = questions
        .iter()
        .map(|question| (question.key.to_owned(), json!({"method": question.method, "params": question.params})))
        .collect();
    let mut result = json!({"resultType": "input_required", "inputRequests": asks});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Ok(Answer::Asks(result))
}

impl Everything {
    /// What the client carries to the next round, signed, so that nobody changes it on the way.
    pub(crate) fn sign(&self, state: &str) -> String {
        format!("{state}.{:016x}", self.secret.hash_one(state))
    }

    /// What the request carries back from the round before.
    ///
    /// # Errors
    /// -32602 for a state that this server did not sign.
    pub(crate) fn state(&self, params: &Value) -> Result<Option<String>, RpcError> {
        let Some(carried) = params.get("requestState") else { return Ok(None) };
        let signed = carried.as_str().and_then(|carried| Some((carried, carried.rsplit_once('.')?.0)));
        match signed {
            Some((carried, state)) if self.sign(state) == carried => Ok(Some(state.to_owned())),
            _ => Err(RpcError::invalid_params("Invalid params: requestState is not what this server gave")),
        }
    }
}
