//! What a line means: against a plain model on `serde_json`, over many lines made from a seed, and case by case.

#[path = "support/chunks.rs"]
mod chunks;
#[path = "support/envelope_model.rs"]
mod envelope_model;
#[path = "support/json.rs"]
mod json;

use chunks::{feed, messages};
use envelope_model::{agrees, model};
use json::Random;

#[test]
fn lines_mean_what_a_plain_model_says() {
    // MSG-01 to MSG-03, MSG-09, MSG-10, UNR-08, LIM-03; FRM-06 with one cut for each line
    // 100 000 cases and more in a release build, or as many as the environment says; a failing case names itself.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("MCP_WIRE_CASES").unwrap_or(if cfg!(debug_assertions) { 40_000 } else { 400_000 });
    let mut random = Random::new(number("MCP_WIRE_SEED").unwrap_or(20_260_728));
    let (mut told, mut good) = (0_u64, 0_u64);
    for case in 0..cases {
        let mut line = json::line(&mut random).into_bytes();
        if !random.once_in(3) {
            json::mutate(&mut random, &mut line);
        }
        let Some(want) = model(&line) else { continue };
        told += 1;
        good += u64::from(!want.contains("invalid"));
        line.insert(0, b' '); // no byte order mark, and never blank
        line.push(b'\n');
        let cut = random.below(line.len());
        let got = feed(1 << 20, [&line[..cut], &line[cut..]], true);
        let text = String::from_utf8_lossy(&line);
        let [got] = &got[..] else {
            assert!(text.trim_matches([' ', '\t', '\r', '\n']).is_empty(), "case {case}: {text:?} gave {got:?}");
            continue;
        };
        assert!(agrees(&got.message, &want), "case {case}: {text:?}\n got {}\nwant {want}", got.message);
    }
    assert!(told > cases * 9 / 10 && good > cases / 20, "{told} told, {good} good of {cases}");
}

#[test]
fn strings_are_checked_wherever_their_blocks_begin() {
    // FRM-06: a byte of every kind at every place of a long string, shifted against every block border
    let text = "Lines\\nof \\\"running\\\" text, C:\\\\dir\\r\\n \\u00e9\\ud83d\\ude00 ".repeat(12);
    let places: Vec<usize> = (0..text.len()).collect();
    for shift in 0..3 {
        for place in places.iter().skip(shift).step_by(3) {
            for byte in [b'"', b'\\', b'\n', 0x1f, b'u', b'x', b'n'] {
                let mut bytes = text.clone().into_bytes();
                bytes[*place] = byte;
                let line =
                    [&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\""[..], &b"aaa"[..shift], &bytes, b"\"}"].concat();
                if byte == b'\n' {
                    assert_eq!(feed(1 << 20, [&line[..], b"\n"], true).len(), 2);
                    continue;
                }
                let valid = std::str::from_utf8(&line).is_ok_and(json::is_json);
                let got = feed(1 << 20, [&line[..], b"\n"], true);
                assert_eq!(got.len(), 1);
                assert_eq!(got[0].message.starts_with("response 1 "), valid, "{}", String::from_utf8_lossy(&line));
            }
        }
    }
}

#[test]
fn names_are_compared_exactly_after_unescaping() {
    // case 026: neither case nor a long s makes another name of it
    assert_eq!(
        messages(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"Method\":\"tools/call\",\"re\\u017fult\":1,\"re\xc5\xbfult\":2}\n"),
        ["request 1 ping -"]
    );
    // An escaped name is the name, so this `id` stands there twice (UNR-08).
    assert_eq!(
        messages(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"\\u0069d\":2,\"method\":\"ping\"}\n"),
        ["unreadable invalid_message - Request - 52"]
    );
}

#[test]
fn ids_that_look_like_nothing_are_ids() {
    // case 043: 0 and the empty string; case 039: beyond 2^53 and beyond 64 bits; case 040: null is none
    for id in ["0", "\"\"", "-0", "9007199254740993", "18446744073709551616", "1e400", "-9223372036854775808"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        assert_eq!(messages(line.as_bytes()), [format!("request {id} ping -")]);
    }
    let null = b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n";
    assert_eq!(messages(null), ["unreadable invalid_message - Request - 43", "notification ping -"]);
    // case 035: the type of an id is kept
    assert_eq!(messages(b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n"), ["response \"1\" {}"]);
}

#[test]
fn errors_without_an_id_are_errors() {
    // MSG-10, case 041
    let error = "{\"code\":-32700,\"message\":\"x\"}";
    for id in ["\"id\":null,", ""] {
        let line = format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}\n");
        assert_eq!(messages(line.as_bytes()), [format!("error - -32700 x - {error}")]);
    }
}

#[test]
fn a_line_is_one_value() {
    // MSG-01, cases 012 and 028: two values, a value and more, a batch; case 029: invisible bytes around it
    let one = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    for (line, want) in [
        (format!("{one}{one}"), "unreadable invalid_json 1 Response - 72"),
        (format!("{one} trailing"), "unreadable invalid_json 1 Response - 45"),
        (format!("[{one}]"), "unreadable invalid_message - Unknown - 38"),
        ("[]".to_owned(), "unreadable invalid_message - Unknown - 2"),
        (format!("{one}\0"), "unreadable invalid_json 1 Response - 37"),
        (format!("\u{1b}]133;A\u{7}{one}"), "unreadable invalid_json - Unknown - 44"),
        ("Content-Length: 38".to_owned(), "unreadable invalid_json - Unknown - 18"), // case 020
    ] {
        assert_eq!(messages(format!("{line}\n").as_bytes()), [want], "{line}");
    }
    // case 019: an indented message is a damaged line for each of its lines, and the next is read
    let indented = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n";
    let got = messages(format!("{indented}{one}\n").as_bytes());
    assert_eq!(got.len(), 6);
    assert_eq!(got[5], "response 1 {}");
}

#[test]
fn params_of_any_type_are_handed_on() {
    // MSG-14: the shape is judged later, so that the answer can name the id; unknown members pass
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[1],\"extra\":{\"deep\":[null]}}\n";
    assert_eq!(messages(line.as_bytes()), ["request 1 m [1]"]);
}
