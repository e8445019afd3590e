//! Lines that are arrays of messages: what is one, and what its elements are.

#[path = "support/chunks.rs"]
mod chunks;

use chunks::say;
use mcp_wire::config::BATCH_LIMIT;
use mcp_wire::{Message, RecvBuffer};

/// The elements of the one line in `text`, in words; `None` if it is no batch.
fn batch(text: &str) -> Option<Vec<String>> {
    let mut recv = RecvBuffer::default();
    recv.extend(text.as_bytes());
    recv.extend(b"\n");
    let frame = recv.next_frame().expect("a whole line");
    let batch = frame.batch()?;
    assert!(matches!(frame.message(), Message::Unreadable(_)), "LEG-10: elsewhere it is no message");
    Some(batch.map(|message| say(&message)).collect())
}

/// What the same text means on a line of its own.
fn alone(text: &str) -> String {
    let mut recv = RecvBuffer::default();
    recv.extend(text.as_bytes());
    recv.extend(b"\n");
    say(&recv.next_frame().expect("a whole line").message())
}

// LEG-09: each element is what it would be on a line of its own, whatever stands between them.
#[test]
fn an_element_is_what_it_is_alone() {
    let elements = [
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,"]"]}}"#,
        r#"{ "method" : "m" , "jsonrpc" : "2.0" }"#,
        r#"{"jsonrpc":"2.0","id":"]","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"m"}"#,
        r#"{"id":8,"method":"m"}"#,
        "[]",
        "{}",
        "7",
        "null",
        "\"x\"",
    ];
    for between in [",", " , ", "\t,\r"] {
        for (open, close) in [("[", "]"), (" [ ", " ] ")] {
            let line = format!("{open}{}{close}", elements.join(between));
            assert_eq!(batch(&line), Some(elements.map(alone).to_vec()), "{line}");
        }
    }
    for element in elements {
        assert_eq!(batch(&format!("[{element}]")), Some(vec![alone(element)]));
    }
}

// LEG-10, LIM-03: an empty array, one that is too long, and what is no array or no JSON are no batch.
#[test]
fn other_lines_are_no_batch() {
    for line in ["[]", "[ ]", "{}", "7", "[1", "[1,]", "[1]]", "\"[1]\"", r#"{"jsonrpc":"2.0","method":"m"}"#] {
        assert_eq!(batch(line), None, "{line}");
    }
    let many = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    assert_eq!(batch(&many(BATCH_LIMIT)).map(|elements| elements.len()), Some(BATCH_LIMIT));
    assert_eq!(batch(&many(BATCH_LIMIT + 1)), None);
    // One that is nested too deeply is unreadable for that.
    assert_eq!(batch(&format!("{}{}", "[".repeat(200), "]".repeat(200))), None);
}
