//! Owns what the core adds to a handler's result: `resultType` where it is missing (MSG-12), and the server's name in its `_meta`
//! (META-05, META-06); and what it takes out of one for a legacy client (META-08). It leaves the handler's other members as they stand, and
//! must not know requests.

use alloc::vec::Vec;
use core::ops::Range;

use memchr::memmem::Finder;

use super::answers::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION};
use crate::Json;
use crate::encode::{Object, raw};
use crate::json::Entry;

/// A result that cannot be sent as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Invalid;

/// Prepared searches for what a result may have already.
#[derive(Debug)]
pub(super) struct Finders {
    result_type: Finder<'static>,
    meta: Finder<'static>,
    /// An escape that may hide a letter of a name.
    escape: Finder<'static>,
}

impl Finders {
    pub(super) fn new() -> Self {
        Self {
            result_type: Finder::new("\"resultType\""),
            meta: Finder::new("\"_meta\""),
            escape: Finder::new("\\u00"),
        }
    }
}

/// How a result is to be written.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// The text of an object.
    text: &'a str,
    add_type: bool,
    meta: Meta,
}

#[derive(Debug, PartialEq, Eq)]
enum Meta {
    /// Nothing is added.
    Keep,
    /// The result has none: it gets one, as its last member.
    Append,
    /// It has one, at this place.
    Merge(Range<usize>),
}

impl<'a> Plan<'a> {
    /// Looks at a result. `named`: the server's name is to be added. `strict`: a result without `resultType` is refused.
    pub(super) fn new(result: Json<'a>, finders: &Finders, named: bool, strict: bool) -> Result<Self, Invalid> {
        let text = result.get().trim_matches([' ', '\t', '\n', '\r']);
        if !text.starts_with('{') {
            return Err(Invalid);
        }
        // The usual result is settled by a search: a name that does not stand there is no member. Escapes could hide one.
        let bytes = text.as_bytes();
        let typed_first = text.starts_with(r#"{"resultType":"#);
        let mut plan = Plan { text, add_type: !typed_first, meta: if named { Meta::Append } else { Meta::Keep } };
        let may_be = |finder: &Finder<'_>| finder.find(bytes).is_some();
        let look = has_long_strings(bytes)
            || (!typed_first && may_be(&finders.result_type))
            || (named && may_be(&finders.meta))
            || may_be(&finders.escape);
        if look {
            plan.look(named);
        }
        if strict && plan.add_type { Err(Invalid) } else { Ok(plan) }
    }

    /// Walks over the members.
    fn look(&mut self, named: bool) {
        let start = self.text.as_ptr() as usize;
        for (name, value) in Json::trusted(self.text).members() {
            let value = value.get();
            match &*name {
                "resultType" => self.add_type = false,
                "_meta" if named => {
                    // The value borrows from the text: where it stands is the distance of the two.
                    let at = (value.as_ptr() as usize).saturating_sub(start);
                    self.meta = Meta::Merge(at..at + value.len());
                }
                _ => {}
            }
        }
    }

    /// Writes the result. `server_info` is the member that names the server.
    pub(super) fn write(&self, out: &mut Vec<u8>, server_info: &[u8]) {
        const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
        let inner = self.text.get(1..).unwrap_or_default();
        let empty = inner.trim_start_matches(SPACE).starts_with('}');
        out.push(b'{');
        if self.add_type {
            raw(out, r#""resultType":"complete""#);
            if !empty {
                out.push(b',');
            }
        }
        match &self.meta {
            Meta::Keep => raw(out, inner),
            Meta::Append => {
                raw(out, inner.strip_suffix('}').unwrap_or(inner).trim_end_matches(SPACE));
                if self.add_type || !empty {
                    out.push(b',');
                }
                raw(out, r#""_meta":{"#);
                out.extend_from_slice(server_info);
                raw(out, "}}");
            }
            Meta::Merge(range) => {
                raw(out, self.text.get(1..range.start).unwrap_or_default());
                merge(out, self.text.get(range.clone()).unwrap_or_default(), server_info);
                raw(out, self.text.get(range.end..).unwrap_or_default());
            }
        }
    }

    /// About how many bytes the result takes.
    pub(super) fn size(&self, server_info: &[u8]) -> usize {
        self.text.len() + server_info.len() + 64
    }
}

/// Whether a large text is mostly long strings. Then one walk that leaps from quote to quote is cheaper than several searches through
/// all of it; in a text of many short ones it is the other way round. A look into the middle tells, well enough.
fn has_long_strings(bytes: &[u8]) -> bool {
    const LARGE: usize = 32 << 10;
    const SAMPLE: usize = 1 << 10;
    const FEW: usize = 8;
    let middle = bytes.len() / 2;
    let sample = bytes.get(middle..middle + SAMPLE).filter(|_| bytes.len() > LARGE);
    sample.is_some_and(|sample| sample.iter().filter(|byte| **byte == b'"').count() <= FEW)
}

/// Writes `_meta` with the server's name in it. The core's key wins; something that is no object is replaced.
fn merge(out: &mut Vec<u8>, meta: &str, server_info: &[u8]) {
    out.push(b'{');
    for Entry { token, value, .. } in Json::trusted(meta).entries().filter(|entry| entry.name != SERVER_INFO) {
        raw(out, token);
        out.push(b':');
        raw(out, value.get());
        out.push(b',');
    }
    out.extend_from_slice(server_info);
    out.push(b'}');
}

/// Why a result cannot be sent to a legacy client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is no object.
    NoObject,
    /// Its `resultType` is one that the legacy era does not have.
    Modern,
}

/// A result as a legacy client gets it: without `resultType`, and without the keys of `_meta` that only the modern era has.
#[derive(Debug)]
pub(super) struct Bare<'a> {
    /// The text of an object.
    text: &'a str,
    /// Something may have to be left out.
    strip: bool,
}

impl<'a> Bare<'a> {
    pub(super) fn new(result: Json<'a>, finders: &Finders) -> Result<Self, Unfit> {
        let text = result.get().trim_matches([' ', '\t', '\n', '\r']);
        if !text.starts_with('{') {
            return Err(Unfit::NoObject);
        }
        let bytes = text.as_bytes();
        let may_be = |finder: &Finder<'_>| finder.find(bytes).is_some();
        let strip = may_be(&finders.result_type) || may_be(&finders.meta) || may_be(&finders.escape);
        let types = || Json::trusted(text).members().filter(|(name, _)| name == "resultType");
        if strip && types().any(|(_, value)| value.as_str().as_deref() != Some("complete")) {
            return Err(Unfit::Modern);
        }
        Ok(Self { text, strip })
    }

    /// An upper bound of what `write` appends.
    pub(super) const fn size(&self) -> usize {
        self.text.len()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if !self.strip {
            raw(out, self.text);
            return;
        }
        let is_modern = |key: &str| {
            [PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, SERVER_INFO, LOG_LEVEL, SUBSCRIPTION].contains(&key)
        };
        let mut object = Object::open(out);
        for entry in Json::trusted(self.text).entries().filter(|entry| entry.name != "resultType") {
            let inner = || entry.value.entries();
            let modern = entry.name == "_meta" && inner().any(|inner| is_modern(&inner.name));
            if !modern {
                object.copy(&entry);
                continue;
            }
            let kept = || inner().filter(|inner| !is_modern(&inner.name));
            if kept().next().is_some() {
                let mut meta = Object::open(object.member("_meta"));
                kept().for_each(|inner| meta.copy(&inner));
                meta.close();
            }
        }
        object.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    // META-08: a legacy client gets no resultType and no modern key; what else a handler says stays as it stands.
    #[test]
    fn what_only_the_modern_era_has_is_taken_out() {
        let bare = |text: &str| {
            let bare = Bare::new(Json::parse(text).expect("JSON"), &Finders::new())?;
            let mut out = Vec::new();
            bare.write(&mut out);
            assert!(out.len() <= bare.size());
            Ok(String::from_utf8(out).expect("UTF-8"))
        };
        // The last one's name has no other form: it is not mended on the way.
        let lone = r#"{"_meta":{"\ud800":1},"\u2028\/\udeee":{}}"#;
        for same in ["{}", r#"{"a": 1.50,"b":[ ]}"#, r#"{"a":{"resultType":"x"}}"#, r#"{"_meta":{"x":1}}"#, lone] {
            assert_eq!(bare(same).as_deref(), Ok(same));
        }
        assert_eq!(bare(r#"{"resultType":"complete"}"#).as_deref(), Ok("{}"));
        assert_eq!(bare(r#"{"\u0072esultType":"complete","a":1}"#).as_deref(), Ok(r#"{"a":1}"#));
        let meta =
            r#"{"a":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"x":1},"resultType":"complete"}"#;
        assert_eq!(bare(meta).as_deref(), Ok(r#"{"a":1,"_meta":{"x":1}}"#));
        let meta = r#"{"_meta":{"io.modelcontextprotocol\/serverInfo":{},"\udfff":1}}"#;
        assert_eq!(bare(meta).as_deref(), Ok(r#"{"_meta":{"\udfff":1}}"#));
        let only = r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
        assert_eq!(bare(only).as_deref(), Ok("{}"));
        // A key of the protocol that the legacy era has.
        let task = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        assert_eq!(bare(task).as_deref(), Ok(task));
        assert_eq!(bare(r#"{"resultType":"input_required","inputRequests":{}}"#), Err(Unfit::Modern));
        assert_eq!(bare(r#"{"resultType":1}"#), Err(Unfit::Modern));
        assert_eq!(bare("[]"), Err(Unfit::NoObject));
    }

    const INFO: &[u8] = br#""io.modelcontextprotocol/serverInfo":{"name":"s"}"#;
    const NAMED: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}"#;

    fn written(text: &str, named: bool) -> String {
        let plan = Plan::new(Json::parse(text).expect("JSON"), &Finders::new(), named, false).expect("a result");
        let mut out = Vec::new();
        plan.write(&mut out, INFO);
        assert!(out.len() <= plan.size(INFO));
        let out = String::from_utf8(out).expect("UTF-8");
        let json: &serde_json::value::RawValue = serde_json::from_str(&out).expect("JSON");
        assert!(Json::trusted(json.get()).members().any(|(name, _)| name == "resultType"));
        out
    }

    // MSG-12: a result without resultType gets one, first; one that has it keeps it, wherever it stands.
    #[test]
    fn the_result_type_is_added_where_it_is_missing() {
        assert_eq!(written("{}", false), r#"{"resultType":"complete"}"#);
        assert_eq!(written("{ }", false), r#"{"resultType":"complete" }"#);
        assert_eq!(written(r#"{"a":1}"#, false), r#"{"resultType":"complete","a":1}"#);
        for kept in [
            r#"{"resultType":"input_required","a":1}"#,
            r#"{"a":{"resultType":1},"resultType":"complete"}"#,
            r#"{"a":1,"\u0072esultType":"complete"}"#,
        ] {
            assert_eq!(written(kept, false), kept);
        }
        let nested = r#"{"a":{"resultType":"x"},"b":"\"resultType\":\u0041"}"#;
        assert_eq!(written(nested, false), alloc::format!(r#"{{"resultType":"complete",{}"#, &nested[1..]));
    }

    // META-05: each result names the server; META-06: what a handler put into `_meta` stays, but for the core's key.
    #[test]
    fn the_server_is_named_in_meta() {
        assert_eq!(written("{}", true), alloc::format!(r#"{{"resultType":"complete",{NAMED}}}"#));
        assert_eq!(written("{ \n }", true), alloc::format!(r#"{{"resultType":"complete",{NAMED}}}"#));
        assert_eq!(
            written(r#"{"resultType":"complete"}"#, true),
            alloc::format!(r#"{{"resultType":"complete",{NAMED}}}"#)
        );
        assert_eq!(
            written(r#"{"a":{"_meta":{"x":1}} }"#, true),
            alloc::format!(r#"{{"resultType":"complete","a":{{"_meta":{{"x":1}}}},{NAMED}}}"#)
        );
        assert_eq!(
            written(r#"{"_meta":{"x":1,"y":"z"},"b":2}"#, true),
            r#"{"resultType":"complete","_meta":{"x":1,"y":"z","io.modelcontextprotocol/serverInfo":{"name":"s"}},"b":2}"#
        );
        assert_eq!(
            written(r#"{"\u005fmeta":{"io.modelcontextprotocol/serverInfo":{"name":"fake"}}}"#, true),
            r#"{"resultType":"complete","\u005fmeta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
        );
        assert_eq!(
            written(r#"{"\ud800":1,"_meta":{"\udfff\/":2}}"#, true),
            r#"{"resultType":"complete","\ud800":1,"_meta":{"\udfff\/":2,"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
            "a name that has no other form is not mended on the way"
        );
        assert_eq!(written(r#"{"_meta":null}"#, true), alloc::format!(r#"{{"resultType":"complete",{NAMED}}}"#));
    }

    // MSG-12, META-06: how a large result is looked through makes no difference.
    #[test]
    fn large_results_are_treated_as_small_ones() {
        let long = alloc::format!("\"{}\"", "x".repeat(100_000));
        let many = alloc::format!("[{}1]", "\"x\",".repeat(25_000));
        assert!(has_long_strings(long.as_bytes()));
        assert!(!has_long_strings(many.as_bytes()));
        for large in [long, many] {
            for (before, after) in [
                (r#"{"a":"#, "}"),
                (r#"{"resultType":"complete","a":"#, r#","_meta":{"x":1}}"#),
                (r#"{"_meta":{"x":1},"a":"#, r#","resultType":"complete"}"#),
                (r#"{"\u005fmeta":{"x":1},"a":"#, r#","b":{"_meta":1}}"#),
            ] {
                let small = written(&alloc::format!("{before}0{after}"), true);
                let written = written(&alloc::format!("{before}{large}{after}"), true);
                assert_eq!(written.replace(&large, "0"), small);
            }
        }
    }

    #[test]
    fn what_is_no_object_is_no_result() {
        for text in ["[]", "null", "1", "\"x\"", "true"] {
            assert_eq!(
                Plan::new(Json::parse(text).expect("JSON"), &Finders::new(), true, false).err(),
                Some(Invalid),
                "{text}"
            );
        }
        let strict = |text| Plan::new(Json::parse(text).expect("JSON"), &Finders::new(), true, true).err();
        assert_eq!(strict(r#"{"a":1}"#), Some(Invalid));
        assert_eq!(strict(r#"{"a":1,"resultType":"complete"}"#), None);
    }
}
