//! The resources: a text, a few bytes, one that can be subscribed to, and a template. It must not know who subscribes.

use mcp_wire_driver::server::{Call, RpcError};
use serde_json::{Value, json};

use crate::KEPT_MS;
use crate::content::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

/// What the template fills: `test://template/{id}/data`.
fn id_of(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

pub(crate) fn list() -> Value {
    let one = |uri: &str, name: &str, mime_type: &str, about: &str| json!({"uri": uri, "name": name, "mimeType": mime_type, "description": about});
    json!({
        "resources": [
            one(TEXT, "static-text", "text/plain", "A text that never changes."),
            one(BINARY, "static-binary", "image/png", "A picture that never changes."),
            one(WATCHED, "watched-resource", "text/plain", "A text that can be subscribed to."),
        ],
        "ttlMs": KEPT_MS,
        "cacheScope": "public",
    })
}

pub(crate) fn templates() -> Value {
    json!({
        "resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data",
            "name": "template",
            "mimeType": "application/json",
            "description": "Tells which id it was asked for.",
        }],
        "ttlMs": KEPT_MS,
        "cacheScope": "public",
    })
}

pub(crate) fn read(call: &Call) -> Result<Value, RpcError> {
    let params: Value = call.params()?;
    let Some(uri) = params["uri"].as_str() else {
        return Err(RpcError::invalid_params("Invalid params: uri is missing"));
    };
    let mut contents = match uri {
        TEXT => json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."}),
        BINARY => json!({"mimeType": "image/png", "blob": PNG}),
        WATCHED => json!({"mimeType": "text/plain", "text": "Watched."}),
        _ => match id_of(uri) {
            Some(id) => json!({
                "mimeType": "application/json",
                "text": json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string(),
            }),
            None => {
                // The legacy era has a code of its own for it.
                let code = if call.legacy_client().is_some() { -32002 } else { -32602 };
                return Err(RpcError::new(code, "Resource not found").data(&json!({"uri": uri})));
            }
        },
    };
    contents["uri"] = json!(uri);
    Ok(json!({"contents": [contents], "ttlMs": KEPT_MS, "cacheScope": "private"}))
}
