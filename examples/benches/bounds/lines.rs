//! Lines that are too long, too deep or no messages at all, as a client meets them. It must not know connections of other kinds.

use mcp_wire::RecvBuffer;

use super::client::{NOW, established, take};
use super::measure::{CHUNK, Meter, Row};
use super::row;

/// One line of so many bytes after its head, read as a pipe gives it, and a good line after it.
fn endless(head: &'static str, filling: u8) -> impl Fn(u64, &mut Meter) {
    move |n, meter| {
        let mut client = established();
        client.request("tools/call", None, Default::default(), NOW).expect("there is room");
        let mut recv = RecvBuffer::default();
        recv.extend(head.as_bytes());
        let mut left = n;
        while left > 0 {
            let now = left.min(CHUNK as u64) as usize;
            let room = recv.spare_mut(now);
            let now = now.min(room.len());
            room[..now].fill(filling);
            meter.cost(now, || {
                recv.commit(now);
                take(&mut recv, &mut client)
            });
            left -= now as u64;
        }
        recv.extend(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n");
        assert_eq!(take(&mut recv, &mut client), 2, "the line after it is read");
    }
}

/// The same line again and again.
fn again(line: String) -> impl Fn(u64, &mut Meter) {
    move |n, meter| {
        let mut client = established();
        let mut recv = RecvBuffer::default();
        let push = |_: u64, chunk: &mut Vec<u8>| chunk.extend_from_slice(line.as_bytes());
        meter.lines(n, &mut recv, push, |recv| {
            take(recv, &mut client);
            true
        });
    }
}

fn result(payload: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#)
}

pub(crate) fn rows() -> Vec<Row> {
    const MIB: u64 = 1 << 20;
    let longest = "9".repeat(1024);
    let escaped = r"\u0069".repeat(150);
    let members: String = (0..2000).map(|n| format!(r#","k{n}":{n}"#)).collect();
    let no_bytes = "\u{fffd}".repeat(20);
    vec![
        row(
            "one line without an end, a string, in bytes (16 times: 10 GiB)",
            640 * MIB,
            "`line_limit`",
            endless(r#"{"jsonrpc":"2.0","id":1,"result":{"text":""#, b'x'),
        ),
        row("the same, brackets", 64 * MIB, "`line_limit`", endless(r#"{"jsonrpc":"2.0","id":1,"result":"#, b'[')),
        row("the same, no JSON from its first byte", 640 * MIB, "`line_limit`", endless("", b'x')),
        row("blank lines", 1_000_000, "one read", again("\r".to_owned())),
        row("lines that are no JSON", 62_500, "one read", again("Server listening on stdio, press ^C to stop".into())),
        row("lines that are damaged text", 62_500, "one read", again(result(&format!("\"{no_bytes}")))),
        row(
            "results nested as deep as may be",
            12_500,
            "the line",
            again(result(&("[".repeat(127) + &"]".repeat(127)))),
        ),
        row("results nested deeper", 12_500, "the line", again(result(&("[".repeat(500) + &"]".repeat(500))))),
        row(
            "ids as long as may be",
            12_500,
            "the line",
            again(format!(r#"{{"jsonrpc":"2.0","id":{longest},"result":{{}}}}"#)),
        ),
        row(
            "ids that are longer",
            12_500,
            "the line",
            again(format!(r#"{{"jsonrpc":"2.0","id":1{longest},"result":{{}}}}"#)),
        ),
        row(
            "keys in escapes",
            12_500,
            "the line",
            again(format!(r#"{{"jsonrpc":"2.0","{escaped}":1,"\u0069\u0064":7,"result":{{}}}}"#)),
        ),
        row(
            "messages of two thousand members",
            1_000,
            "the line",
            again(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}}{members}}}"#)),
        ),
    ]
}
