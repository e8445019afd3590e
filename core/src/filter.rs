//! Owns the filter of a `subscriptions/listen`: which kinds of change it asks for or was granted.
//! It must not know who may grant what; that is the server facade's.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What a `subscriptions/listen` asks for, or what its acknowledgment grants (SUB-02).
///
/// ```
/// use mcp_wire::Filter;
///
/// let filter = Filter::default().tools_list_changed().resource("demo://clock");
/// assert_eq!(
///     serde_json::to_string(&filter)?,
///     r#"{"toolsListChanged":true,"resourceSubscriptions":["demo://clock"]}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Filter {
    /// `notifications/tools/list_changed`.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub tools_list_changed: bool,
    /// `notifications/prompts/list_changed`.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// `notifications/resources/list_changed`.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub resources_list_changed: bool,
    /// URIs whose `notifications/resources/updated` are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
}

impl Filter {
    /// Asks for changes of the tool list.
    #[must_use]
    pub fn tools_list_changed(mut self) -> Self {
        self.tools_list_changed = true;
        self
    }

    /// Asks for changes of the prompt list.
    #[must_use]
    pub fn prompts_list_changed(mut self) -> Self {
        self.prompts_list_changed = true;
        self
    }

    /// Asks for changes of the resource list.
    #[must_use]
    pub fn resources_list_changed(mut self) -> Self {
        self.resources_list_changed = true;
        self
    }

    /// Asks for updates of one resource.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.push(uri.into());
        self
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is in `self` and not in `granted` (SUB-11).
    #[must_use]
    pub fn missing_from(&self, granted: &Self) -> Self {
        Self {
            tools_list_changed: self.tools_list_changed && !granted.tools_list_changed,
            prompts_list_changed: self.prompts_list_changed && !granted.prompts_list_changed,
            resources_list_changed: self.resources_list_changed && !granted.resources_list_changed,
            resource_subscriptions: (self.resource_subscriptions.iter())
                .filter(|uri| !granted.resource_subscriptions.contains(uri))
                .cloned()
                .collect(),
        }
    }
}
