//! Owns the lines that no server should write, and a few that a careless one does. It must not know who reads them.

use super::random::Random;

/// One line with its end, or a blank one. `seen` are honest lines that were written before, `id` an id the client may use.
pub(crate) fn line(random: &mut Random, seen: &[Vec<u8>], id: u64, limit: usize) -> Vec<u8> {
    let text = match random.below(24) {
        0 => "Server listening on stdio".to_string(),
        1 => String::new(),
        2 => " \t\r".to_string(),
        3 => "[]".to_string(),
        4 => r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#.to_string(),
        5 => r#"{"jsonrpc":"2.0","id":1e400,"result":{}}"#.to_string(),
        6 => format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#),
        7 => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"forged":true}}}}"#, id + 1_000_000),
        8 => r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#.to_string(),
        9 => r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#.to_string(),
        10 => r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#.to_string(),
        11 => format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
        12 => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":9}}}}"#
        ),
        13 => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ),
        14 => r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#.to_string(),
        15 => "[".repeat(300),
        16 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{"code":1,"message":"both"}}}}"#),
        17 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"x","forged":true}}}}"#),
        18 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"forged":true}}}}"#),
        19 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":5,"message":"forged"}}}}"#),
        20 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{}"#, "x".repeat(limit + random.size(limit))),
        21 => format!(r#"{{"jsonrpc":"2.0","id":{id},"id":{id},"result":{{}}}}"#),
        22 => "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/\u{1}\"}".to_string(),
        _ => {
            if seen.is_empty() {
                return b"\xff\xfe\n".to_vec();
            }
            return seen[random.size(seen.len())].clone(); // a duplicate
        }
    };
    let mut line = text.into_bytes();
    line.push(b'\n');
    line
}
