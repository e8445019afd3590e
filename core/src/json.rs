//! Owns JSON text that passes through the core without being parsed: borrowed (`Json`) and owned (`JsonBuf`).
//! It must not know JSON-RPC.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::walker::{Levels, Walker};

/// One JSON value as text, borrowed. Payloads cross the core in this form, byte for byte.
///
/// A `Json` that the core hands out has been validated completely. `Debug` shows the length only,
/// never the content (SEC-03).
///
/// ```
/// use mcp_wire::Json;
///
/// let json = Json::parse(r#"{"n":9007199254740993}"#)?;
/// assert_eq!(json.get(), r#"{"n":9007199254740993}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The empty object `{}`.
    pub const EMPTY: Json<'static> = Json("{}");
    /// The value `null`.
    pub const NULL: Json<'static> = Json("null");

    /// Text that is known to be one JSON value with no white space around it.
    pub(crate) const fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// Checks that `text` is one JSON value.
    ///
    /// # Errors
    /// What `serde_json` says of it otherwise.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self(raw.get()))
    }

    /// The text.
    #[must_use]
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// The members of an object, in their order: names unescaped, values as text. Nothing for another value. A name that is no
    /// Unicode text (a lone surrogate) is passed over.
    ///
    /// ```
    /// use mcp_wire::Json;
    ///
    /// let json = Json::parse(r#"{"a":[1, 2],"\u0062":{}}"#)?;
    /// let members: Vec<_> = json.members().map(|(name, value)| (name.into_owned(), value.get())).collect();
    /// assert_eq!(members, [("a".to_owned(), "[1, 2]"), ("b".to_owned(), "{}")]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let mut walker = Walker::<false> { bytes: self.0.as_bytes(), at: 0 };
        let open = walker.expect(b'{').is_ok();
        core::iter::from_fn(move || {
            loop {
                if !open {
                    return None;
                }
                let key = walker.key().ok()?;
                walker.white_space();
                let start = walker.at;
                walker.value(&mut Levels::default()).ok()?;
                let value = Json(self.0.get(start..walker.at)?);
                // A comma, or the end: then the next key is not found.
                let _ = walker.expect(b',');
                let name = self.0.get(key.start + 1..key.end - 1)?;
                if !key.escaped {
                    return Some((Cow::Borrowed(name), value));
                }
                if let Ok(name) = serde_json::from_str::<String>(self.0.get(key.start..key.end)?) {
                    return Some((Cow::Owned(name), value));
                }
            }
        })
    }

    /// Reads the value into a type of the caller's.
    ///
    /// # Errors
    /// What `serde_json` says when the value does not fit `T`.
    pub fn deserialize<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0)
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

/// One JSON value as text, owned. `Debug` shows the length only (SEC-03).
///
/// ```
/// use mcp_wire::JsonBuf;
///
/// let buf = JsonBuf::new(&[1, 2])?;
/// assert_eq!(buf.as_json().get(), "[1,2]");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct JsonBuf(String);

impl JsonBuf {
    /// Serializes `value`.
    ///
    /// # Errors
    /// What `serde_json` says when the value has no JSON form (a map with keys that are no strings, say).
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self)
    }

    /// Borrows the value.
    #[must_use]
    pub fn as_json(&self) -> Json<'_> {
        Json(&self.0)
    }

    /// The text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for JsonBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonBuf({} bytes)", self.0.len())
    }
}

impl From<Json<'_>> for JsonBuf {
    fn from(json: Json<'_>) -> Self {
        Self(json.0.to_string())
    }
}

/// The value as serde sees it: raw text, neither parsed nor changed.
impl Serialize for Json<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl Serialize for JsonBuf {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_json().serialize(serializer)
    }
}
