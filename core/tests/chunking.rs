//! Framing: bytes become lines, whatever the cut. Each case runs whole, byte by byte and at every single cut.

#[path = "support/chunks.rs"]
mod chunks;

use chunks::{Owned, drain, feed, messages};
use mcp_wire::{Frame, Message, RecvBuffer};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const GOOD: &str = "request 1 ping -";

fn texts(limit: usize, bytes: &[u8]) -> Vec<String> {
    chunks::lines(limit, bytes).into_iter().map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned()).collect()
}

#[test]
fn one_line_feed_closes_one_message() {
    // FRM-01; case 013: two short lines in one read
    assert_eq!(messages(format!("{PING}\n{PING}\n").as_bytes()), [GOOD, GOOD]);
}

#[test]
fn a_carriage_return_before_the_line_feed_belongs_to_the_line_end() {
    // FRM-04; case 001
    assert_eq!(texts(100, b"{}\r\n{\r\"a\":1}\n\r\n{}\r\r\n"), ["{}", "{\r\"a\":1}", "{}\r"]);
    assert_eq!(messages(format!("{PING}\r\n").as_bytes()), [GOOD]);
}

#[test]
fn other_line_separators_do_not_split() {
    // FRM-04; case 003: U+2028, U+2029 and U+0085 stand raw in a string, VT and FF are damage but no line end
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\u{2028}b\u{2029}c\u{85}d\"}";
    assert_eq!(messages(format!("{line}\n").as_bytes()), ["response 1 \"a\u{2028}b\u{2029}c\u{85}d\""]);
    assert_eq!(texts(100, b"a\x0bb\x0cc\n"), ["a\x0bb\x0cc"]);
}

#[test]
fn blank_lines_are_skipped() {
    // FRM-05; case 021
    assert_eq!(messages(format!("\n\r\n  \t\r\n{PING}\n\n \n").as_bytes()), [GOOD]);
    assert!(messages(b"  ").is_empty());
}

#[test]
fn a_character_cut_by_a_read_is_joined() {
    // FRM-06; case 004
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"é日😀\"}\n".repeat(2);
    assert_eq!(messages(line.as_bytes()), ["response 1 \"é日😀\""; 2]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    // FRM-08; case 008
    let bom = "\u{feff}";
    assert_eq!(messages(format!("{bom}{PING}\n").as_bytes()), [GOOD]);
    assert_eq!(
        messages(format!("{PING}\n{bom}{PING}\n{PING}\n").as_bytes()),
        [GOOD, "unreadable invalid_json - Unknown - 43", GOOD]
    );
    assert_eq!(messages(format!("{bom}{bom}{PING}\n").as_bytes()), ["unreadable invalid_json - Unknown - 43"]);
    // One that never becomes whole is bad text.
    assert_eq!(messages(b"\xef\xbb{}\n"), ["unreadable invalid_utf8 - Unknown - 4"]);
    assert_eq!(messages(b"\xef\xbb\xbf\xff\n"), ["unreadable invalid_utf8 - Unknown - 1"]);
    assert_eq!(messages(b"\xef\xbb"), ["unreadable truncated - Unknown - 2"]);
    assert!(messages(bom.as_bytes()).is_empty());
    // After a reset the stream starts anew.
    let mut recv = RecvBuffer::default();
    for _ in 0..2 {
        recv.extend(format!("{bom}{PING}\nhalf").as_bytes());
        assert!(matches!(recv.next_frame().map(Frame::message), Some(Message::Request { .. })));
        assert!(recv.next_frame().is_none());
        recv.reset();
    }
}

#[test]
fn an_unclosed_last_line_counts_if_it_is_a_whole_message() {
    // FRM-09; case 022
    assert_eq!(messages(format!("{PING}\n{PING}").as_bytes()), [GOOD, GOOD]);
    assert_eq!(messages(format!("{PING} \r").as_bytes()), [GOOD]);
    assert_eq!(messages(b"{\"a"), ["unreadable truncated - Unknown - 3"]);
    assert_eq!(messages(br#"{"id":4,"method":"x""#), ["unreadable truncated 4 Request - 20"]);
    // The last digit may be missing.
    assert_eq!(messages(br#"{"method":"x","id":4"#), ["unreadable truncated - Request - 20"]);
    assert_eq!(messages(b"{\"foo\":12345}"), ["unreadable invalid_message - Unknown - 13"]);
    assert_eq!(messages(b"{\"id\":1,\"a\":\"\xff"), ["unreadable truncated 1 Unknown - 14"]);
}

#[test]
fn a_line_of_exactly_the_limit_is_accepted() {
    // LIM-01: N bytes before CR LF
    let limit = PING.len();
    for end in ["\n", "\r\n"] {
        let got = chunks::lines(limit, format!("{PING}{end}{PING}{end}").as_bytes());
        assert_eq!(got.iter().map(|frame| frame.message.as_str()).collect::<Vec<_>>(), [GOOD, GOOD]);
        let got = chunks::lines(limit - 1, format!("{PING}{end}{{}}{end}").as_bytes());
        let want = format!("unreadable line_too_long 1 Request - {limit}");
        assert_eq!(got[0], Owned { bytes: Vec::new(), message: want });
        assert_eq!(got[1].bytes, b"{}");
    }
    assert_eq!(chunks::lines(limit, PING.as_bytes())[0].message, GOOD);
    assert_eq!(chunks::lines(limit - 1, PING.as_bytes())[0].bytes, b"");
}

#[test]
fn lines_too_long_are_discarded_and_the_next_one_is_read() {
    // LIM-01, UNR-01; cases 015 and 016
    let text = format!("{PING}\n{}\n{PING}\n{}\r\n \u{e9}{}\n{PING}\n", "x".repeat(60), "é".repeat(50), "y".repeat(60));
    let got: Vec<_> = chunks::lines(50, text.as_bytes()).into_iter().map(|frame| frame.message).collect();
    let long = |len| format!("unreadable line_too_long - Unknown - {len}");
    assert_eq!(got, [GOOD.to_owned(), long(60), GOOD.to_owned(), long(100), long(63), GOOD.to_owned()]);
    // Bad text in it makes no difference, nor does white space.
    for byte in [0xff, b' '] {
        let got = chunks::lines(4, &[&[byte; 9][..], b"\n{}"].concat());
        assert_eq!(got[0].message, "unreadable line_too_long - Unknown - 9");
        assert_eq!(got[1].bytes, b"{}");
    }
}

#[test]
fn bad_text_costs_its_line_only() {
    // UNR-01; cases 005 and 006
    let bytes = [
        PING.as_bytes(),
        b"\n\xff\xfe\n",
        PING.as_bytes(),
        b"\n{\"id\":7,\"result\":\"\x97\"}\r\n\n",
        PING.as_bytes(),
        b"\n",
    ];
    let bad = "unreadable invalid_utf8 7 Response - 21";
    assert_eq!(messages(&bytes.concat()), [GOOD, "unreadable invalid_utf8 - Unknown - 2", GOOD, bad, GOOD]);
    // Cut characters, overlong forms and surrogates are no UTF-8 either.
    for bad in [&b"\xc3"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80"]
    {
        let want = format!("unreadable invalid_utf8 - Unknown - {}", bad.len());
        let got = messages(&[bad, b"\n", PING.as_bytes(), b"\n", bad, b"\r\n"].concat());
        assert_eq!(got, [want.as_str(), GOOD, &want]);
        assert_eq!(chunks::lines(100, &[bad, b"\n"].concat())[0].bytes, bad);
    }
}

#[test]
fn utf_16_is_damage_that_ends_with_it() {
    // case 034: the line after it begins with a NUL and is lost, the next one is read
    let bytes = [&b"{\0}\0\r\0\n\0"[..], PING.as_bytes(), b"\n", PING.as_bytes(), b"\n"].concat();
    let got = messages(&bytes);
    assert_eq!(got.last().map(String::as_str), Some(GOOD));
    assert_eq!(got.len(), 3);
}

#[test]
fn bytes_after_the_end_of_input_are_ignored() {
    let mut recv = RecvBuffer::new(100);
    recv.extend(PING.as_bytes());
    recv.close();
    recv.extend(b"\n{}\n");
    recv.close();
    let mut got = Vec::new();
    drain(&mut recv, &mut got);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].message, GOOD);
}

#[test]
fn a_commit_without_room_or_beyond_it_changes_nothing() {
    let mut recv = RecvBuffer::new(1 << 20);
    recv.commit(10);
    let room = recv.spare_mut(0).len();
    assert!(room > 0);
    recv.spare_mut(70_000).fill(b' ');
    recv.commit(usize::MAX);
    recv.commit(5);
    recv.extend(format!("{PING}\n").as_bytes());
    let frame = recv.next_frame().expect("a line");
    assert!(frame.bytes().len() >= 70_000);
    assert!(matches!(frame.message(), Message::Request { .. }));
}

#[test]
fn random_bytes_in_random_cuts_give_the_frames_of_a_split() {
    // FRM-06, FRM-07, against the naive model
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).expect("31 bits") % below
    };
    let words: [&[u8]; 16] = [
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"{",
        b"}",
        b"\"id\":",
        b"1",
        b",",
        b"\"method\":\"m\"",
        b"\xff",
        b"\xc3",
        b"\xa9",
        b"\xf0\x9f",
        b"\xef\xbb\xbf",
        PING.as_bytes(),
    ];
    for _ in 0..3_000 {
        let mut bytes = b"{".to_vec(); // no byte order mark at the start
        (0..random(30)).for_each(|_| bytes.extend_from_slice(words[random(words.len())]));
        bytes.push(b'\n');
        let limit = [8, 40, 1000][random(3)];
        let want: Vec<(Vec<u8>, bool)> = bytes[..bytes.len() - 1]
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| line.len() > limit || !line.iter().all(|byte| b" \t\r".contains(byte)))
            .map(|line| (if line.len() > limit { Vec::new() } else { line.to_vec() }, line.len() > limit))
            .collect();
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + random(12)).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let got = feed(limit, pieces, true);
        assert_eq!(got, feed(limit, [&bytes[..]], true), "{:?}", String::from_utf8_lossy(&bytes));
        let got: Vec<_> = got.into_iter().map(|frame| (frame.bytes, frame.message.contains("line_too_long"))).collect();
        assert_eq!(got, want, "{:?}", String::from_utf8_lossy(&bytes));
    }
}
