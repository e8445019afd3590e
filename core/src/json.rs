//! Owns JSON text that passes through the core without being parsed: borrowed (`Json`) and owned (`JsonBuf`).
//! It must not know JSON-RPC.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::scanner::{End, Walker, string_end};

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
        // The walk over lines is the faster judge; it does not know line breaks between tokens, nor what to say of what is no JSON.
        if Walker::new().finish(text.as_bytes()) == End::Whole {
            return Ok(Self(text.trim_matches([' ', '\t', '\r'])));
        }
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

    /// The members of an object at its top level, in order: the name, unescaped, and the value. Empty for any other value.
    /// Nothing is parsed: values are skipped over, so a look at the first few members of a large object is cheap.
    ///
    /// A surrogate that stands alone in a name reads as U+FFFD, as it has no other form in UTF-8.
    ///
    /// ```
    /// use mcp_wire::Json;
    ///
    /// let json = Json::parse(r#"{"a":[1,{"b":2}],"\u0063":null}"#)?;
    /// let members: Vec<_> = json.members().map(|(name, value)| (name.into_owned(), value.get())).collect();
    /// assert_eq!(members, [("a".to_owned(), r#"[1,{"b":2}]"#), ("c".to_owned(), "null")]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members(self.entries())
    }

    /// The members of an object as [`Json::members`] has them, each with its name as it stands in the text. Who writes a member again
    /// writes that, so that a name leaves as it came.
    pub(crate) fn entries(self) -> Entries<'a> {
        Entries { text: self.0, at: if self.is_object() { 1 } else { self.0.len() } }
    }

    /// The elements of an array; none for any other value.
    pub(crate) fn elements(self) -> Elements<'a> {
        Elements { text: self.0, at: if self.0.starts_with('[') { 1 } else { self.0.len() } }
    }

    /// The value of a string; `None` for any other value. A surrogate that stands alone reads as U+FFFD.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape_lossy(inner))
    }

    /// Reads the value into a type of the caller's.
    ///
    /// # Errors
    /// What `serde_json` says when the value does not fit `T`.
    pub fn deserialize<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0)
    }
}

/// The members of an object, in order. Made by [`Json::members`].
///
/// ```
/// let mut members = mcp_wire::Json::EMPTY.members();
/// assert!(members.next().is_none());
/// ```
#[derive(Clone)]
pub struct Members<'a>(Entries<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|Entry { name, value, .. }| (name, value))
    }
}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Members({} bytes left)", self.0.text.len().saturating_sub(self.0.at))
    }
}

/// A member of an object.
pub(crate) struct Entry<'a> {
    /// The name, unescaped.
    pub(crate) name: Cow<'a, str>,
    /// The name as it stands in the text, with its quotes.
    pub(crate) token: &'a str,
    pub(crate) value: Json<'a>,
}

/// The members of an object, in order. Made by [`Json::entries`].
#[derive(Clone)]
pub(crate) struct Entries<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // The text is valid JSON, so each `?` below is the end of the object.
        let bytes = self.text.as_bytes();
        let name_at = skip(bytes, self.at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b','));
        let name_len = string_len(bytes.get(name_at..)?)?;
        let name_end = name_at.checked_add(name_len)?;
        let value_at = skip(bytes, name_end, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':'));
        let value_end = value_at.checked_add(value_len(bytes.get(value_at..)?)?)?;
        self.at = value_end;
        let token = self.text.get(name_at..name_end)?;
        let name = unescape_lossy(token.get(1..token.len() - 1)?);
        Some(Entry { name, token, value: Json(self.text.get(value_at..value_end)?) })
    }
}

/// The elements of an array, in order.
#[derive(Clone)]
pub(crate) struct Elements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        // The text is valid JSON, so each `?` below is the end of the array.
        let bytes = self.text.as_bytes();
        let start = skip(bytes, self.at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b','));
        if bytes.get(start) == Some(&b']') {
            return None;
        }
        let end = start.checked_add(value_len(bytes.get(start..)?)?)?;
        self.at = end;
        Some(Json(self.text.get(start..end)?))
    }
}

fn skip(bytes: &[u8], at: usize, unwanted: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| unwanted(**byte)).count()
}

/// Length of the string token that `bytes` begin with, quotes included; `None` if there is none, or it is not closed.
pub(crate) fn string_len(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'"') {
        return None;
    }
    string_end(bytes, 1)
}

/// Length of the value that `bytes`, valid JSON, begin with.
fn value_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string_len(bytes),
        b'{' | b'[' => {
            let (mut at, mut depth) = (0_usize, 0_usize);
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at += string_len(bytes.get(at..)?)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        _ => bytes
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
            .or(Some(bytes.len())),
    }
}

/// The value of a string token without its quotes; `None` if an escape is none, a surrogate stands alone, or a control
/// character or a quote stands raw.
pub(crate) fn unescape(inner: &str) -> Option<Cow<'_, str>> {
    if inner.bytes().any(|byte| byte < 0x20) {
        return None;
    }
    unescape_with(inner, None)
}

fn unescape_lossy(inner: &str) -> Cow<'_, str> {
    // With a stand-in for lone surrogates, only text that is no JSON string is refused.
    unescape_with(inner, Some('\u{fffd}')).unwrap_or_default()
}

fn unescape_with(inner: &str, lone: Option<char>) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((clean, escape)) = rest.split_once('\\') {
        out.push_str(clean);
        let kind = escape.chars().next()?;
        rest = escape.get(kind.len_utf8()..)?;
        out.push(match kind {
            '"' | '\\' | '/' => kind,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = hex(rest)?;
                rest = rest.get(4..)?;
                let second = rest.strip_prefix("\\u").and_then(hex).filter(|unit| matches!(unit, 0xdc00..=0xdfff));
                match (first, second) {
                    (0xd800..=0xdbff, Some(second)) => {
                        rest = rest.get(6..)?;
                        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?
                    }
                    _ => char::from_u32(first).or(lone)?,
                }
            }
            _ => return None,
        });
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The value of the four hexadecimal digits that `text` begins with.
pub(crate) fn hex(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    digits.bytes().try_fold(0, |value, digit| Some((value << 4) | char::from(digit).to_digit(16)?))
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

    /// Takes text that is one JSON value, without a copy unless there is white space around it.
    ///
    /// # Errors
    /// What `serde_json` says of text that is something else.
    ///
    /// ```
    /// use mcp_wire::JsonBuf;
    ///
    /// assert_eq!(JsonBuf::from_text(" [1, 2]\n".into())?.as_json().get(), "[1, 2]");
    /// assert!(JsonBuf::from_text("[1, 2".into()).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        let json = Json::parse(&text)?;
        Ok(if json.get().len() == text.len() { Self(text) } else { json.into() })
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    // Whoever checks it, the same text is JSON and the same white space is left out.
    #[test]
    fn text_is_checked_as_serde_json_checks_it() {
        let deep = |depth| alloc::format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let texts = [
            "",
            " ",
            "1",
            " 1 ",
            "\t{} \r",
            "\n[1,\n2]\n",
            "[1]x",
            "{} {}",
            "\"a\nb\"",
            "[1,]",
            "nul",
            "-",
            "01",
            "\u{a0}1",
        ];
        for text in texts.map(String::from).into_iter().chain([deep(126), deep(127), deep(128), deep(129), deep(1000)])
        {
            let plain = serde_json::from_str::<&RawValue>(&text).ok().map(RawValue::get);
            assert_eq!(Json::parse(&text).ok().map(Json::get), plain, "{text}");
            let owned = JsonBuf::from_text(text.clone()).ok();
            assert_eq!(owned.as_ref().map(|buf| buf.as_json().get()), plain, "{text}");
        }
    }

    #[test]
    fn members_are_found_as_serde_json_finds_them() {
        let texts = [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            "{ \"a\" : [ 1 , { \"}\" : \"\\\"]\" } ] ,\t\"b\\u0041\" : -1.5e3 , \"\":{}, \"é\\\\\" : \"\\\\\" }",
            r#"{"x":{"y":{"z":[[],[[]]]}},"n":null}"#,
        ];
        for text in texts {
            let json = Json::parse(text).expect("valid");
            let got: Vec<(String, serde_json::Value)> =
                json.members().map(|(name, value)| (name.into_owned(), value.deserialize().expect("valid"))).collect();
            let want: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).expect("an object");
            assert_eq!(got.len(), want.len(), "{text}");
            for (name, value) in got {
                assert_eq!(want.get(&name), Some(&value), "{text}");
            }
        }
        for text in ["[1]", "\"{\"", "7", "null"] {
            assert!(Json::parse(text).expect("valid").members().next().is_none(), "{text}");
        }
    }

    #[test]
    fn elements_are_found_as_serde_json_finds_them() {
        let texts = [
            "[]",
            "[ ]",
            "[1]",
            "[ -1.5e3 , true,null\t]",
            r#"[[],[[1],2],{"a":[3]},"]","\\","\"]"]"#,
            "[[[]]]",
            r#"[ {"x":"]"} , [ "}" ] ]"#,
        ];
        for text in texts {
            let json = Json::parse(text).expect("valid");
            let got: Vec<serde_json::Value> =
                json.elements().map(|value| value.deserialize().expect("valid")).collect();
            let want: Vec<serde_json::Value> = serde_json::from_str(text).expect("an array");
            assert_eq!(got, want, "{text}");
        }
        for text in [r#"{"a":1}"#, "\"[\"", "7", "null"] {
            assert!(Json::parse(text).expect("valid").elements().next().is_none(), "{text}");
        }
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(unescape(r"a\n\u0041\ud83d\ude00\/").as_deref(), Some("a\nA😀/"));
        for bad in ["\\", "\\x", "\\u12", "\\u12g4", "\\ud800", "\\udc00\\ud800", "\\u+123", "a\u{1}"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
        assert_eq!(unescape_lossy(r"\ud800\u0041\udc00"), "\u{fffd}A\u{fffd}");
    }
}
