//! Owns the two resources of the demo server: a clock, and a counter that counts its changes. It must not know who subscribes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_wire_driver::server::{Call, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const CLOCK: &str = "demo://clock";
pub(super) const COUNTER: &str = "demo://counter";

/// What the resources hold.
#[derive(Debug, Default)]
pub(super) struct Resources {
    counter: AtomicU64,
}

impl Resources {
    /// Makes one change. The clock changes by itself, and others hold nothing.
    pub(super) fn touch(&self, uri: &str) {
        if uri == COUNTER {
            self.counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The result of `resources/list`.
    pub(super) fn list() -> Value {
        json!({
            "resultType": "complete",
            "resources": [
                {"uri": CLOCK, "name": "clock", "description": "Milliseconds since 1970.", "mimeType": "text/plain"},
                {"uri": COUNTER, "name": "counter", "description": "How often it was touched.", "mimeType": "text/plain"},
            ],
            "ttlMs": 60_000,
            "cacheScope": "public",
        })
    }

    /// The result of `resources/templates/list`.
    pub(super) fn templates() -> Value {
        json!({"resultType": "complete", "resourceTemplates": [], "ttlMs": 60_000, "cacheScope": "public"})
    }

    /// The result of `resources/read`.
    pub(super) fn read(&self, call: &Call) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            uri: String,
        }
        let Params { uri } = call.params()?;
        let text = match &*uri {
            CLOCK => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis()).to_string(),
            COUNTER => self.counter.load(Ordering::Relaxed).to_string(),
            _ => {
                // The legacy era has a code of its own for it.
                let code = if call.legacy_client().is_some() { -32002 } else { -32602 };
                return Err(RpcError::new(code, "Resource not found").data(&json!({"uri": uri})));
            }
        };
        Ok(json!({
            "resultType": "complete",
            "contents": [{"uri": uri, "mimeType": "text/plain", "text": text}],
            "ttlMs": 0,
            "cacheScope": "private",
        }))
    }
}
