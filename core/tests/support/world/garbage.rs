//! Owns the lines that no server should write, and a few that a careless one does. It must not know who reads them.

use super::random::Random;

/// A kind of fault and its line with the end, or a blank one. `seen` are honest lines that were written before, `id` an id the client may use.
pub(crate) fn line(random: &mut Random, seen: &[Vec<u8>], id: u64, limit: usize) -> (&'static str, Vec<u8>) {
    let (kind, text) = match random.below(24) {
        0 => ("a banner", "Server listening on stdio".to_string()),
        1 => ("a blank line", String::new()),
        2 => ("a blank line", " \t\r".to_string()),
        3 => ("an empty array", "[]".to_string()),
        4 => ("an array out of place", r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#.to_string()),
        5 => ("a number that is none", r#"{"jsonrpc":"2.0","id":1e400,"result":{}}"#.to_string()),
        6 => ("an id of the wrong type", format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#)),
        7 => ("an unknown id", format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"forged":true}}}}"#, id + 1_000_000)),
        8 => (
            "an error without an id",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#.to_string(),
        ),
        9 => (
            "an error without an id",
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#.to_string(),
        ),
        10 => ("a request of the server's", r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#.to_string()),
        11 => (
            "a cancellation of the server's",
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
        ),
        12 => (
            "forged progress",
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":9}}}}"#
            ),
        ),
        13 => (
            "a forged notification of a listen",
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
            ),
        ),
        14 => (
            "a notification out of place",
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#.to_string(),
        ),
        15 => ("deep nesting", "[".repeat(300)),
        16 => (
            "a result and an error in one",
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{"code":1,"message":"both"}}}}"#),
        ),
        17 => (
            "a result of an unknown type",
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"x","forged":true}}}}"#),
        ),
        18 => ("a forged result", format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"forged":true}}}}"#)),
        19 => ("a forged error", format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":5,"message":"forged"}}}}"#)),
        20 => (
            "an endless line",
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{}"#, "x".repeat(limit + random.size(limit))),
        ),
        21 => ("a key twice", format!(r#"{{"jsonrpc":"2.0","id":{id},"id":{id},"result":{{}}}}"#)),
        22 => ("a control character", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/\u{1}\"}".to_string()),
        _ => {
            if seen.is_empty() {
                return ("bytes that are not UTF-8", b"\xff\xfe\n".to_vec());
            }
            return ("a line twice", seen[random.size(seen.len())].clone());
        }
    };
    let mut line = text.into_bytes();
    line.push(b'\n');
    (kind, line)
}
