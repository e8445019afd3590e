//! Owns how a value of the server's becomes text that a person can read: escaped, indented, in columns. It must not know events.

use std::fmt::Write as _;

use mcp_wire::Json;
use serde::Deserialize;

/// Text with control characters escaped, but for line breaks and tabs: what a peer sends never drives the terminal.
pub(super) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\t' => safe.push(c),
            // Also what reorders the text around it.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                safe.extend(c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    safe
}

/// The same on one line.
pub(super) fn safe_line(text: &str) -> String {
    safe(text).replace('\n', "\\n").replace('\t', " ")
}

/// JSON with indents, its numbers, names and their order as they stand on the wire.
pub(super) fn pretty(json: Json<'_>) -> String {
    let text = json.get();
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut rest = text.char_indices();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => {
                let (mut escaped, mut end) = (false, text.len());
                for (at, c) in rest.by_ref() {
                    match c {
                        '"' if !escaped => {
                            end = at + 1;
                            break;
                        }
                        c => escaped = c == '\\' && !escaped,
                    }
                }
                out.push_str(text.get(at..end).unwrap_or_default());
            }
            '{' | '[' => {
                let close = if c == '{' { '}' } else { ']' };
                let inner = text.get(at + 1..).unwrap_or_default().trim_start();
                out.push(c);
                if inner.starts_with(close) {
                    out.push(close);
                    rest.find(|(_, c)| *c == close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    safe(&out)
}

/// The members of results that are shown in a form of their own. What does not fit is shown as JSON.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Shape<'a> {
    #[serde(borrow)]
    content: Option<Vec<Content<'a>>>,
    #[serde(rename = "isError")]
    is_error: bool,
    tools: Option<Vec<Item>>,
    prompts: Option<Vec<Item>>,
    resources: Option<Vec<Item>>,
    #[serde(rename = "resourceTemplates")]
    resource_templates: Option<Vec<Item>>,
    #[serde(borrow)]
    contents: Option<Vec<Content<'a>>>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Content<'a> {
    r#type: String,
    text: Option<String>,
    #[serde(borrow)]
    data: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow)]
    blob: Option<&'a serde_json::value::RawValue>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    name: String,
    uri: Option<String>,
    #[serde(rename = "uriTemplate")]
    uri_template: Option<String>,
    description: Option<String>,
    title: Option<String>,
}

/// A result for a person, and whether a tool says that it failed.
pub(super) fn result(json: Json<'_>) -> (String, bool) {
    let Ok(shape) = json.deserialize::<Shape<'_>>() else { return (pretty(json), false) };
    let lists = [
        ("tools", &shape.tools),
        ("prompts", &shape.prompts),
        ("resources", &shape.resources),
        ("resource templates", &shape.resource_templates),
    ];
    for (what, items) in lists {
        if let Some(items) = items {
            return (list(what, items, shape.next_cursor.as_deref()), false);
        }
    }
    if let Some(contents) = shape.contents.as_ref().or(shape.content.as_ref()) {
        let structured = json.members().find(|(name, _)| name == "structuredContent").map(|(_, value)| value);
        let text = contents.iter().any(|content| content.text.is_some());
        return match structured {
            Some(value) if !text => (pretty(value), shape.is_error),
            _ => (blocks(contents), shape.is_error),
        };
    }
    (pretty(json), false)
}

fn blocks(contents: &[Content<'_>]) -> String {
    if contents.is_empty() {
        return "(no content)".to_owned();
    }
    let block = |content: &Content<'_>| match (&content.text, content.data.or(content.blob)) {
        (Some(text), _) => safe(text),
        (None, data) => {
            let mut line = format!("[{}", if content.r#type.is_empty() { "binary" } else { &content.r#type });
            for part in [&content.mime_type, &content.uri].into_iter().flatten() {
                let _ = write!(line, " {part}");
            }
            if let Some(data) = data {
                // Two quotes around it.
                let _ = write!(line, ", {} characters of base64", data.get().len().saturating_sub(2));
            }
            line.push(']');
            safe_line(&line)
        }
    };
    contents.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn list(what: &str, items: &[Item], next: Option<&str>) -> String {
    if items.is_empty() {
        return format!("(no {what})");
    }
    let name = |item: &Item| safe_line(item.uri.as_deref().or(item.uri_template.as_deref()).unwrap_or(&item.name));
    let names: Vec<String> = items.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (item, name) in items.iter().zip(&names) {
        let about = item.description.as_deref().or(item.title.as_deref()).unwrap_or_default();
        let about = about.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let line = format!("{name:width$}  {}", safe_line(about));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    match next {
        Some(cursor) => {
            let _ = write!(text, "(there are more: ask again with \"cursor\":{})", serde_json::Value::from(cursor));
            safe(&text)
        }
        None => text.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::parse(text).expect("JSON")
    }

    // SEC-03: text of a peer that is shown is escaped.
    #[test]
    fn a_peers_text_never_drives_the_terminal() {
        assert_eq!(safe("a\u{1b}[2Jb\r\nc\td\r\u{9b}\u{202e}"), "a\\u{1b}[2Jb\nc\td\\u{d}\\u{9b}\\u{202e}");
        let (text, _) = result(json(r#"{"content":[{"type":"text","text":"\u001b]0;x\u0007"}]}"#));
        assert_eq!(text, "\\u{1b}]0;x\\u{7}");
    }

    #[test]
    fn json_is_indented_and_otherwise_left_alone() {
        let text = pretty(json(r#"{"b":1.0,"a":[ ],"c":{"x":"a\"},{\\","y":[1,{ }]},"d":12345678901234567890123}"#));
        let expected = r#"{
  "b": 1.0,
  "a": [],
  "c": {
    "x": "a\"},{\\",
    "y": [
      1,
      {}
    ]
  },
  "d": 12345678901234567890123
}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_tools_text_is_shown_plainly() {
        let (text, failed) = result(json(
            r#"{"resultType":"complete","content":[{"type":"text","text":"42"}],"structuredContent":{"sum":42}}"#,
        ));
        assert_eq!((&*text, failed), ("42", false));
        let (text, failed) = result(json(r#"{"content":[],"structuredContent":{"sum":42}}"#));
        assert_eq!((&*text, failed), ("{\n  \"sum\": 42\n}", false));
        let (text, failed) =
            result(json(r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}],"isError":true}"#));
        assert_eq!((&*text, failed), ("[image image/png, 4 characters of base64]", true));
    }

    #[test]
    fn a_list_is_names_and_first_lines() {
        let (text, _) = result(json(
            r#"{"tools":[{"name":"add","description":"\n Adds.\nAnd more."},{"name":"longer"}],"nextCursor":"c"}"#,
        ));
        assert_eq!(text, "add     Adds.\nlonger\n(there are more: ask again with \"cursor\":\"c\")");
        assert_eq!(result(json(r#"{"resources":[]}"#)).0, "(no resources)");
        let (text, _) = result(json(r#"{"resources":[{"name":"n","uri":"demo://clock","description":"d"}]}"#));
        assert_eq!(text, "demo://clock  d");
    }

    #[test]
    fn what_has_no_form_of_its_own_is_json() {
        for text in [r#"{"tools":7}"#, r#"{"content":"x"}"#, "7", r#"{"supportedVersions":["x"]}"#] {
            assert_eq!(result(json(text)), (pretty(json(text)), false));
        }
    }
}
