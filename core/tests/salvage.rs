//! The id of a line that cannot be read: found where it is certain, and nowhere else (UNR-02).

#[path = "support/chunks.rs"]
mod chunks;
#[path = "support/json.rs"]
mod json;

use chunks::{feed, frames, messages};
use json::Random;

/// The id and the shape that are told of a damaged line, whatever the damage is.
#[track_caller]
fn salvaged(line: &[u8]) -> (String, String) {
    let tell = |message: &str| {
        let words: Vec<&str> = message.split(' ').collect();
        assert_eq!(words[0], "unreadable", "{message}");
        // The id may hold blanks; it stands between the reason and the last three words.
        (words[2..words.len() - 3].join(" "), words[words.len() - 3].to_owned())
    };
    let closed = [line, b"\n"].concat();
    let got = messages(&closed);
    assert_eq!(got.len(), 1, "{got:?}");
    let told = tell(&got[0]);
    // UNR-02: a line over the limit, of which nothing is kept, tells the same, in every cut.
    let long = chunks::lines(line.len() - 1, &closed);
    assert_eq!((long.len(), long[0].bytes.len()), (1, 0));
    assert!(long[0].message.starts_with("unreadable line_too_long "), "{}", long[0].message);
    assert_eq!(tell(&long[0].message), told, "{}", String::from_utf8_lossy(line));
    told
}

#[test]
fn the_id_is_found_before_and_after_other_members() {
    // UNR-02, UNR-03
    for (line, id, shape) in [
        (&br#"{"id":4,"method":"x""#[..], "4", "Request"),
        (br#"{"method":"x","params":{"a":[1,"]}"]},"id":"L1","y":"#, "\"L1\"", "Request"),
        (br#"{"result":{"n":NaN},"id":7}"#, "7", "Response"),
        (br#"{"id":1,"result":{}}{"id":2,"result":{}}"#, "1", "Response"),
        (br#"{"result":"a\qb","id":7.0}"#, "7.0", "Response"),
        (b"{\"result\":\"\xff\xfe\",\"id\":7}", "7", "Response"),
        (b"{\"result\":\"a\x01b\",\"id\":-7}", "-7", "Response"),
        (br#"{"\u0069d":5,"x":tru}"#, "5", "Unknown"),
        (br#" { "id" : 5 , "error" : {"code":1} "#, "5", "Response"),
        (br#"{"id":1e2,"method":"#, "1e2", "Request"),
        (br#"{"method":"x","params":{]}"#, "-", "Unknown"),
        (br#"{"method":"x","params":nul}"#, "-", "Notification"),
        (br#"{"method":"x","result":1,,"#, "-", "Unknown"),
    ] {
        let got = salvaged(line);
        assert_eq!((got.0.as_str(), got.1.as_str()), (id, shape), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn an_id_counts_only_where_it_is_certain() {
    // UNR-02, UNR-08
    for line in [
        &br#"{"id":4"#[..],            // the last digit may be missing
        br#"{"id":"a"#,                // so may the rest of it
        br#"{"id":4,"id":4,"x""#,      // not unique
        br#"{"id":4,"\u0069d":5,"x""#, // not unique, escaped
        br#"{"x":{"id":4},"y""#,       // not at top level
        br#"{"id":1.5,"x""#,           // not an id
        br#"{"id":null,"x""#,
        br#"{"id":{"id":4},"x""#,
        br#"{"id":"\ud800","x""#,
        b"{\"id\":\"\xff\",\"x\"",
        br#"["id",4,"id":4"#, // no object
        br#"x{"id":4}"#,
        br#"{"a" "id":4}"#, // no object from here on
        br#"{"a":[1,2},"id":4}"#,
        br#"{"a":]1,"id":4}"#,
        br#"{"a":1]"id":4}"#,
        br#"{"i\xd":4,"id":4"#,
        br#"{"idx":4,"ID":4,"i":4,"#, // another name
        br#"{"s":"\",\"id\":4,","#,   // inside a string
    ] {
        assert_eq!(salvaged(line).0, "-", "{}", String::from_utf8_lossy(line));
    }
    // case 050: what an earlier line held is never used for a later one
    assert_eq!(
        messages(b"{\"id\":4,\"x\"\n{\"x\"\n"),
        ["unreadable invalid_json 4 Unknown - 11", "unreadable invalid_json - Unknown - 4"]
    );
}

#[test]
fn an_id_of_the_longest_length_is_found_and_a_longer_one_is_none() {
    // LIM-03
    for (digits, found) in [(1024, true), (1025, false)] {
        let id = "9".repeat(digits);
        let line = format!("{{\"id\":{id},\"result\":tru}}\n");
        let want = if found { format!("invalid_json id {id}") } else { "invalid_json".to_owned() };
        assert_eq!(chunks::whole(line.as_bytes(), 1 << 20), [want]);
        let want = if found { format!("line_too_long id {id}") } else { "line_too_long".to_owned() };
        assert_eq!(chunks::whole(line.as_bytes(), 100), [want]);
    }
}

#[test]
fn an_id_behind_twenty_mebibytes_is_found_in_constant_memory() {
    // UNR-02, LIM-01
    let limit = 1 << 20;
    let mut recv = mcp_wire::RecvBuffer::new(limit);
    let mut feed = |bytes: &[u8]| {
        recv.extend(bytes);
        let told = recv.next_frame().map(chunks::describe);
        assert!(recv.capacity() < limit + (512 << 10), "{}", recv.capacity());
        told
    };
    assert_eq!(feed(b"{\"jsonrpc\":\"2.0\",\"result\":[\"\xc3\xa9"), None);
    for _ in 0..20 * 16 {
        assert_eq!(feed(&[b'x'; 64 << 10]), None);
    }
    assert_eq!(feed(b"\"],\"id\":7}\r\n{\"jsonrpc\"").as_deref(), Some("line_too_long id 7"));
}

#[test]
fn a_line_cut_off_anywhere_never_tells_a_wrong_id() {
    // UNR-02, FRM-09
    let line = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"é\""},"id":"a\u0062","data":[1,{"id":2}]}"#.as_bytes();
    let after_id = line.windows(7).position(|window| window == b",\"data\"").expect("it is there");
    for len in 1..line.len() {
        let got = feed(1 << 20, [&line[..len]], true);
        let words: Vec<&str> = got[0].message.split(' ').collect();
        assert_eq!(words[..2], ["unreadable", "truncated"], "{len}");
        assert_eq!(words[2], if len >= after_id { "\"a\\u0062\"" } else { "-" }, "{len}");
    }
}

#[test]
fn what_is_told_of_a_damaged_line_does_not_depend_on_where_it_lies() {
    // UNR-02: kept or discarded, closed or not, in whatever pieces
    let mut random = Random::new(7);
    for _ in 0..5_000 {
        let mut line = json::line(&mut random).into_bytes();
        json::mutate(&mut random, &mut line);
        line.insert(0, b' ');
        line.push(b'\n');
        let kept = feed(1 << 20, [&line[..]], true);
        let cut = random.below(line.len());
        let gone = feed(line.len() / 2, [&line[..cut], &line[cut..]], true);
        let (Some(kept), [gone]) = (kept.first(), &gone[..]) else { continue };
        let text = String::from_utf8_lossy(&line);
        let tail = |message: &str, reason: &str| message.strip_prefix(reason).map(str::to_owned);
        for reason in ["unreadable invalid_json ", "unreadable invalid_utf8 ", "unreadable too_deep "] {
            if let Some(kept) = tail(&kept.message, reason) {
                assert_eq!(
                    tail(&gone.message, "unreadable line_too_long ").as_deref(),
                    Some(kept.as_str()),
                    "{text:?}"
                );
            }
        }
    }
}

#[test]
fn a_damaged_line_costs_itself_only() {
    // UNR-01, case 009
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for bad in ["hello", "{", "\"", "{\"id\":", "[", "]", "}", "\\", "nul", "-", "1e", "{\"a\":\"\\u12\"}"] {
        let got = frames(format!("{good}\n{bad}\n{good}\n").as_bytes());
        assert_eq!(got, ["request 1 ping", "invalid_json", "request 1 ping"], "{bad}");
    }
}
