//! How bytes become frames. Every test passes through the chunk helper, which feeds them whole, byte by byte and at every single cut.

#[path = "support/chunks.rs"]
mod chunks;

use chunks::{frames, frames_with_limit};

const GOOD: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

// FRM-01, FRM-06: one message a line, however the reads were cut. case 013: one read event is taken to be one message
#[test]
fn each_line_is_a_frame_however_the_reads_were_cut() {
    let input = format!("{GOOD}\n{GOOD}\n");
    assert_eq!(frames(input.as_bytes()), ["response 1", "response 1"]);
}

// FRM-04, case 001: Windows text-mode peer ends every frame with CR LF
#[test]
fn one_cr_before_the_lf_belongs_to_the_line_end_and_no_other_splits() {
    assert_eq!(frames(format!("{GOOD}\r\n").as_bytes()), ["response 1"]);
    assert_eq!(frames(b"{\"jsonrpc\":\"2.0\",\r\"id\":1,\"result\":{}}\r\n"), ["response 1"]);
}

// case 003: line reader splits on U+2028, U+2029, U+0085, VT or FF
#[test]
fn only_a_lf_ends_a_line() {
    let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"\u{2028}\u{2029}\u{85}\"}}\n";
    assert_eq!(frames(text.as_bytes()), ["response 1"]);
    assert_eq!(frames(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x0b\"}\n"), ["invalid_json id 1"]);
}

// FRM-05, case 021: blank lines raise parse errors
#[test]
fn blank_lines_are_skipped() {
    assert_eq!(frames(format!("\n\r\n  \t\r\n{GOOD}\n \n").as_bytes()), ["response 1"]);
    assert_eq!(frames(b"  \t"), Vec::<String>::new());
}

// FRM-08, case 008: UTF-8 byte order mark before the first message
#[test]
fn a_byte_order_mark_counts_at_the_very_start_only() {
    assert_eq!(frames(format!("\u{feff}{GOOD}\n").as_bytes()), ["response 1"]);
    assert_eq!(frames(format!("{GOOD}\n\u{feff}{GOOD}\n").as_bytes()), ["response 1", "invalid_json"]);
}

// FRM-09, case 022: last frame without newline at end of stream
#[test]
fn an_unclosed_last_line_counts_if_it_is_whole() {
    assert_eq!(frames(GOOD.as_bytes()), ["response 1"]);
    assert_eq!(frames(format!("{GOOD}\n{{\"a").as_bytes()), ["response 1", "truncated"]);
    assert_eq!(frames(b"[]"), ["invalid_message"]);
}

// UNR-01, cases 005, 009 and 101: a damaged line, noise or a banner costs that line only
#[test]
fn an_unreadable_line_costs_that_line_only() {
    let input = [GOOD.as_bytes(), b"\n\xff\xfe\nhello\n", GOOD.as_bytes(), b"\n"].concat();
    assert_eq!(frames(&input), ["response 1", "invalid_utf8", "invalid_json", "response 1"]);
}

// LIM-01, case 015: 64 KiB line limit of the line scanner ends the session; case 016: endless line without newline
#[test]
fn a_line_over_the_limit_is_discarded_and_the_next_is_read() {
    let exact = GOOD.len();
    let input = format!("{GOOD}\r\n{GOOD} \n{GOOD}\n");
    assert_eq!(frames_with_limit(input.as_bytes(), exact), ["response 1", "line_too_long id 1", "response 1"]);
    assert_eq!(frames_with_limit(format!("{GOOD} ").as_bytes(), exact), ["line_too_long id 1"]);
}

// LIM-01: with a line of any length the memory stays at the limit and a constant
#[test]
fn an_endless_line_costs_constant_memory() {
    let limit = 1 << 20;
    let mut recv = mcp_wire::RecvBuffer::new(limit);
    recv.extend(b"{\"jsonrpc\":\"2.0\",\"result\":\"");
    for _ in 0..512 {
        recv.extend(&[b'x'; 64 << 10]);
        assert!(recv.next_frame().is_none());
        assert!(recv.capacity() <= limit + (1 << 20), "{}", recv.capacity());
    }
    recv.extend(b"\",\"id\":7}\n");
    assert_eq!(recv.next_frame().map(chunks::describe).as_deref(), Some("line_too_long id 7"));
    assert!(recv.next_frame().is_none());
    assert!(recv.capacity() <= 1 << 20, "the memory comes back");
}

// UNR-02: the id is found before or after other members, escaped, past the limit; not when it is cut, doubled or nested
#[test]
fn the_id_of_a_damaged_line_is_found_where_it_is_certain() {
    for (line, expected) in [
        (r#"{"id":4,"method":"x""#, "invalid_json id 4"),
        (r#"{"result":{"a":[1,{"id":9}]},"id":"a,}","x":"#, "invalid_json id \"a,}\""),
        (r#"{"\u0069d":5,"x":tru}"#, "invalid_json id 5"),
        (r#"{"id":4"#, "invalid_json"),
        (r#"{"id":4,"id":5,"x":"#, "invalid_json"),
        (r#"{"x":{"id":4},"y":"#, "invalid_json"),
        (r#"{"id":1.5,"x":"#, "invalid_json"),
        (r#"["id",4,"#, "invalid_json"),
        (r#"{"id":1,"result":{}}{"id":2,"result":{}}"#, "invalid_json id 1"),
        (r#"Loading... {"id":1,"result":{}}"#, "invalid_json"),
    ] {
        assert_eq!(frames(format!("{line}\n").as_bytes()), [expected], "{line}");
    }
    assert_eq!(frames(b"{\"id\":7,\"result\":\"\xff\"}\n"), ["invalid_utf8 id 7"]);
}

// LIM-03: nesting is bounded; only what is JSON otherwise counts as too deep
#[test]
fn nesting_is_bounded_without_a_stack_overflow() {
    let deep = |n: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(n), "]".repeat(n));
    assert_eq!(frames(format!("{}\n", deep(127)).as_bytes()), ["response 1"]);
    assert_eq!(chunks::whole(format!("{}\n", deep(128)).as_bytes(), 1 << 24), ["too_deep id 1"]);
    assert_eq!(chunks::whole(format!("{}\n", "[".repeat(100_000)).as_bytes(), 1 << 24), ["invalid_json"]);
}

// case 020: peer speaks Content-Length framing
#[test]
fn content_length_framing_is_named() {
    let mut recv = mcp_wire::RecvBuffer::default();
    recv.extend(b"Content-Length: 38\r\n\r\n");
    let frame = recv.next_frame().expect("a line");
    let mcp_wire::Message::Unreadable(line) = frame.message() else { panic!("no message") };
    assert_eq!(line.reason, mcp_wire::UnreadableReason::ContentLength);
}

// MSG-01, -02, -03, -09, UNR-08, cases 026, 028, 040 and 043: what is a message and what is none
#[test]
fn the_shape_of_a_message_is_checked() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "request 0 ping"),
        (r#"{"jsonrpc":"2.0","id":"","method":"p\u0069ng","params":[1]}"#, "request \"\" ping"),
        (r#" { "method" : "x" , "jsonrpc" : "2.0" } "#, "notification x"),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#, "error none -32700"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"message":"x","code":1e1}}"#, "error none 10"),
        (r#"{"jsonrpc":"2.0","id":3,"error":{"code":0,"message":"x","data":[]}}"#, "error 3 0"),
        (r#"{"id":1,"method":"ping"}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.1","id":1,"method":"ping"}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "invalid_message"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "invalid_message"),
        (r#"{"jsonrpc":"2.0","id":1e2,"method":"ping"}"#, "request 1e2 ping"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "invalid_message"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"x"}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":5,"message":""}}"#, "invalid_message id 1 code 5"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#, "invalid_message id 1"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "invalid_message"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","re\u017fult":1}"#, "request 1 ping"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}} trailing"#, "invalid_json id 1"),
        (r#"{}"#, "invalid_message"),
        (r#"[]"#, "invalid_message"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "invalid_message"),
        (r#"17"#, "invalid_message"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\0", "invalid_json id 1"),
    ] {
        assert_eq!(frames(format!("{line}\n").as_bytes()), [expected], "{line}");
    }
}

// LIM-03: ids and methods are at most 1 KiB
#[test]
fn ids_and_methods_are_bounded() {
    let line = |id: &str, method: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
    let long = "9".repeat(1025);
    assert_eq!(chunks::whole(line(&long, "x").as_bytes(), 1 << 20), ["invalid_message"]);
    assert_eq!(chunks::whole(line("1", &long).as_bytes(), 1 << 20), ["invalid_message id 1"]);
    assert_eq!(chunks::whole(line("1", &long[1..]).as_bytes(), 1 << 20).len(), 1);
}

// case 024: integer literal with thousands of digits; case 033: large integers lose digits; a lone surrogate in a payload passes
#[test]
fn payloads_pass_as_raw_text() {
    let payload = format!(r#"{{"n":{},"f":1.0,"e":1E400,"s":"\ud800"}}"#, "9".repeat(5000));
    let mut recv = mcp_wire::RecvBuffer::default();
    recv.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{payload}}}\n").as_bytes());
    let frame = recv.next_frame().expect("a line");
    let mcp_wire::Message::Response { result, .. } = frame.message() else { panic!("a response") };
    assert_eq!(result.get(), payload);
}

// RST-06: a new life begins with an empty buffer
#[test]
fn half_a_line_is_not_glued_to_the_next_life() {
    let mut recv = mcp_wire::RecvBuffer::default();
    recv.extend(&GOOD.as_bytes()[..10]);
    assert!(recv.next_frame().is_none());
    recv.reset();
    recv.extend(format!("{GOOD}\n").as_bytes());
    assert_eq!(recv.next_frame().map(chunks::describe).as_deref(), Some("response 1"));
}

// UNR-07: what is said of a dropped frame shows none of its content
#[test]
fn debug_output_shows_no_content() {
    let mut recv = mcp_wire::RecvBuffer::default();
    recv.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"k\":\"SENTINEL\"}}\n{\"SENTINEL\n");
    while let Some(frame) = recv.next_frame() {
        assert!(!format!("{:?}", frame.message()).contains("SENTINEL"));
    }
}
