//! Input of a peer that means harm: it may cost a line, never a panic, never more memory than the limit, never more than linear time.
//! Where a test would run for hours if the cost were not linear, that it ends is the assertion.

#[path = "support/chunks.rs"]
mod chunks;
#[path = "support/json.rs"]
mod json;

use chunks::{describe, drain, whole};
use json::Random;
use mcp_wire::{Message, RecvBuffer, UnreadableReason};

const BIG: usize = 64 << 20;
const GOOD: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

#[test]
fn nesting_costs_no_stack() {
    // LIM-03: too deep is only what would be JSON otherwise
    let nested = |n: usize, close: bool| {
        let close = if close { "]".repeat(n) } else { String::new() };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}{close}}}\n", "[".repeat(n))
    };
    assert_eq!(whole(nested(127, true).as_bytes(), BIG), ["response 1"]);
    for n in [128, 1_000, 1_000_000] {
        assert_eq!(whole(nested(n, true).as_bytes(), BIG), ["too_deep id 1"], "{n}");
        assert_eq!(whole(nested(n, false).as_bytes(), BIG), ["invalid_json id 1"], "{n}");
        assert_eq!(whole(nested(n, true).as_bytes(), 100), ["line_too_long id 1"], "{n}");
    }
    for open in ["[", "{\"a\":", "[{\"\":["] {
        assert_eq!(whole(format!("{}\n", open.repeat(100_000)).as_bytes(), BIG), ["invalid_json"]);
    }
    // Objects and arrays in turn: the kind of each level is remembered, also of the outermost.
    let mixed = format!("{}1{}\n", "{\"a\":[".repeat(64), "]}".repeat(64));
    assert_eq!(whole(mixed.as_bytes(), BIG), ["invalid_message"]);
    let crossed = mixed.replacen("1]}", "1}]", 1);
    assert_eq!(whole(crossed.as_bytes(), BIG), ["invalid_json"]);
}

#[test]
fn a_name_or_an_id_that_is_too_long_is_refused() {
    // LIM-03
    let reason = |id: &str, method: &str| {
        let mut recv = RecvBuffer::default();
        recv.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method}}}\n").as_bytes());
        match recv.next_frame().expect("a line").message() {
            Message::Unreadable(line) => Some((line.reason, line.id.is_some())),
            _ => None,
        }
    };
    let long = format!("\"{}\"", "x".repeat(1022));
    let longer = format!("\"{}\"", "x".repeat(1023));
    assert_eq!(reason(&long, &long), None);
    assert_eq!(reason(&longer, "\"m\""), Some((UnreadableReason::IdTooLong, false)));
    assert_eq!(reason(&"1".repeat(1025), "\"m\""), Some((UnreadableReason::IdTooLong, false)));
    assert_eq!(reason("1", &longer), Some((UnreadableReason::NameTooLong, true)));
}

#[test]
fn long_tokens_in_single_bytes_cost_linear_time() {
    // FRM-07, case 018: a number, a string and white space of 512 KiB, byte by byte
    for (open, byte, close) in
        [("", b'9', ""), ("\"", b'x', "\""), ("", b' ', "1"), ("\"", b'\\', "\""), ("[", b'[', "")]
    {
        let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{open}").into_bytes();
        line.extend(std::iter::repeat_n(byte, 512 << 10));
        line.extend_from_slice(close.as_bytes());
        line.extend_from_slice(b"}\n");
        let mut recv = RecvBuffer::new(BIG);
        for byte in &line[..line.len() - 1] {
            recv.extend(std::slice::from_ref(byte));
            assert!(recv.next_frame().is_none());
        }
        recv.extend(b"\n");
        let told = recv.next_frame().map(describe).expect("a line");
        assert_eq!(told, if byte == b'[' { "invalid_json id 1" } else { "response 1" });
    }
}

#[test]
fn many_lines_taken_one_by_one_cost_linear_time() {
    // FRM-07: a reader that takes one frame a read
    let mut recv = RecvBuffer::new(1 << 20);
    recv.extend(GOOD.repeat(50_000).as_bytes());
    for _ in 0..50_000 {
        recv.extend(b"\n");
        assert!(recv.next_frame().is_some());
    }
    assert!(recv.next_frame().is_none());
    // The same where every line is bad text, which is taken from another place.
    recv.extend(&b"\xff\n".repeat(50_000));
    for _ in 0..50_000 {
        recv.extend(b"\n");
        assert!(recv.next_frame().is_some());
    }
    assert!(recv.next_frame().is_none());
}

#[test]
fn an_endless_line_costs_constant_memory() {
    // LIM-01, case 016: in text, in white space and in bytes that are no text
    let limit = 256 << 10;
    for filler in [&b"x"[..], b" ", b"\xff", "é".as_bytes(), b"\"\\", b"["] {
        let chunk = filler.repeat(32 << 10);
        let mut recv = RecvBuffer::new(limit);
        for _ in 0..64 {
            let n = chunk.len();
            recv.spare_mut(n)[..n].copy_from_slice(&chunk);
            recv.commit(n);
            assert!(recv.next_frame().is_none());
            assert!(recv.capacity() <= limit + (512 << 10), "{} of {:?}", recv.capacity(), filler);
        }
        recv.extend(b"\n");
        assert_eq!(recv.next_frame().map(describe).as_deref(), Some("line_too_long"));
        recv.extend(GOOD.as_bytes());
        assert_eq!(recv.next_frame().map(describe).as_deref(), Some("request 1 ping"));
    }
}

#[test]
fn the_memory_of_a_giant_line_comes_back() {
    // LIM-01
    for filler in ["x", "\u{e9}"] {
        let mut recv = RecvBuffer::new(BIG);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}\n", filler.repeat(8 << 20));
        for piece in line.as_bytes().chunks(60_001) {
            recv.extend(piece);
            if let Some(frame) = recv.next_frame() {
                assert_eq!(describe(frame), "response 1");
            }
        }
        assert!(recv.next_frame().is_none());
        assert!(recv.capacity() <= 512 << 10, "{}", recv.capacity());
    }
    // A line of some hundred KiB is kept room for, but not for ever.
    let mut recv = RecvBuffer::new(BIG);
    recv.extend(format!("\"{}\"\n", "x".repeat(1 << 20)).as_bytes());
    assert!(recv.next_frame().is_some());
    for _ in 0..100 {
        recv.extend(GOOD.as_bytes());
        assert!(recv.next_frame().is_some());
        assert!(recv.next_frame().is_none());
    }
    assert!(recv.capacity() <= 512 << 10, "{}", recv.capacity());
}

#[test]
fn numbers_of_any_length_pass_as_text() {
    // cases 024 and 033: digits are neither counted nor rounded, and a lone surrogate in a payload is nobody's business here
    let payload =
        format!("{{\"n\":9007199254740993,\"f\":1.0,\"e\":1E400,\"s\":\"\\ud800\",\"d\":{}}}", "9".repeat(5000));
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{payload}}}\n");
    let mut recv = RecvBuffer::default();
    recv.extend(line.as_bytes());
    let Some(Message::Response { result, .. }) = recv.next_frame().map(mcp_wire::Frame::message) else {
        panic!("a response")
    };
    assert_eq!(result.get(), payload);
}

#[test]
fn random_bytes_never_panic_and_leave_the_stream_in_step() {
    // LIM-06, UNR-01
    let mut random = Random::new(99);
    for _ in 0..2_000 {
        let mut recv = RecvBuffer::new([1, 16, 4096][random.below(3)]);
        let mut frames = Vec::new();
        for _ in 0..random.below(20) {
            let mut bytes = if random.once_in(2) { json::line(&mut random).into_bytes() } else { Vec::new() };
            json::mutate(&mut random, &mut bytes);
            for _ in 0..random.below(6) {
                bytes.push(random.below(256).try_into().expect("a byte"));
            }
            let cut = random.below(bytes.len() + 1);
            recv.extend(&bytes[..cut]);
            drain(&mut recv, &mut frames);
            recv.extend(&bytes[cut..]);
        }
        recv.extend(b"\n");
        drain(&mut recv, &mut frames);
        recv.extend(b"{}\n");
        drain(&mut recv, &mut frames);
        assert!(frames.last().is_some_and(|frame| frame.message.ends_with(" 2")), "{frames:?}");
        if random.once_in(2) {
            recv.reset();
        }
        recv.close();
        assert!(recv.next_frame().is_none());
    }
}
