//! Progress by its token.

use mcp_wire::client::ProgressToken;
use mcp_wire::{DropReason, Filter, Id, IdBuf, SendError, UnreadableReason};

use crate::support::{Client, Seen, json, options};

fn own(token: &str) -> ProgressToken {
    ProgressToken::Own(IdBuf::from(Id::parse(token).expect("a token")))
}

fn note() -> String {
    "notifications/progress".into()
}

fn unknown() -> Seen {
    Seen::Dropped(DropReason::UnknownProgressToken, None, None)
}

// PRG-01: a minted token is the request's id; a caller's own leaves as it was given.
#[test]
fn tokens_are_minted_or_the_callers_own() {
    let mut client = Client::plain();
    client.request_with(|o| o.progress = ProgressToken::Minted);
    client.request_with(|o| o.progress = own("\"p-9\""));
    client.request("plain");
    let lines = client.wire();
    assert!(lines[0].contains(r#""progressToken":2}"#));
    assert!(lines[1].contains(r#""progressToken":"p-9"}"#));
    assert!(!lines[2].contains("progressToken"));
}

// RTE-05, cases 054, 055: progress goes by its token, types kept apart; a token that equals an id means nothing.
#[test]
fn progress_goes_by_its_token() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = own("1"));
    let b = client.request_with(|o| o.progress = own("\"1\""));
    let c = client.request_with(|o| o.progress = own("0"));
    let d = client.request_with(|o| o.progress = own("\"\""));
    let e = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.request("none");
    client.wire();
    for (token, handle) in [("1", a), ("1.0", a), ("\"1\"", b), ("\"\\u0031\"", b), ("0", c), ("\"\"", d), ("6", e)] {
        assert_eq!(client.progress(token, "1"), Seen::Note(Some(handle), note()), "{token}");
    }
    // Ids of requests that asked for no progress, or asked under another token.
    for token in ["7", "2", "3", "\"6\"", "99", "\"a\""] {
        assert_eq!(client.progress(token, "1"), unknown(), "{token}");
    }
}

// case 052: progress of a finished request is dropped and harms nothing.
#[test]
fn progress_of_a_finished_request_is_dropped() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = ProgressToken::Minted);
    let b = client.request_with(|o| o.progress = own("\"b\""));
    client.wire();
    client.result(2);
    client.cancel(b, None);
    assert_eq!(client.progress("2", "1"), unknown());
    assert_eq!(client.progress("\"b\"", "1"), unknown());
    assert!(client.conn.in_flight() == 0 && a != b);
    let again = client.request_with(|o| o.progress = own("\"b\""));
    client.wire();
    assert_eq!(client.progress("\"b\"", "1"), Seen::Note(Some(again), note()));
}

// PRG-01: a token in use is refused, in whatever spelling, also against a minted one; after the end it is free.
#[test]
fn a_token_in_use_is_refused() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.request_with(|o| o.progress = own("\"x\""));
    for token in ["2", "2.0", "\"x\"", "\"\\u0078\""] {
        let mut options = options();
        options.progress = own(token);
        let refused = client.conn.request("m", None, options, client.now);
        assert_eq!(refused, Err(SendError::TokenInUse), "{token}");
    }
    assert_eq!(client.conn.in_flight(), 2);
    client.cancel(a, None);
    client.request_with(|o| o.progress = own("2"));
}

// PRG-01: a minted token is never one that a caller uses already.
#[test]
fn a_minted_token_avoids_the_callers_own() {
    let mut client = Client::plain();
    client.request_with(|o| o.progress = own("3"));
    let b = client.request_with(|o| o.progress = ProgressToken::Minted);
    let lines = client.wire();
    assert!(lines[1].contains(r#""id":4,"#) && lines[1].contains(r#""progressToken":4"#), "{}", lines[1]);
    assert_eq!(client.progress("4", "1"), Seen::Note(Some(b), note()));
}

// PRG-01: a token of another kind in the caller's own metadata is refused; left out, it would be progress that never comes. One that the core
// mints takes its place.
#[test]
fn a_token_of_another_kind_is_refused() {
    for mut client in [Client::plain(), crate::legacy::session("2025-11-25")] {
        for token in ["null", "1.5", "true", "{}", r#"["a"]"#, &format!("\"{}\"", "t".repeat(1025))] {
            let params = format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#);
            let refused = client.conn.request("m", Some(json(&params)), options(), client.now);
            assert_eq!(refused, Err(SendError::InvalidToken), "{token}");
            assert!(client.wire().is_empty(), "an error changes nothing");
            let mut minted = options();
            minted.progress = ProgressToken::Minted;
            client.conn.request("m", Some(json(&params)), minted, client.now).expect("the core's token wins");
            let line = client.wire().remove(0);
            assert!(
                line.matches("progressToken").count() == 1 && !line.contains(&format!("Token\":{token}")),
                "{line}"
            );
        }
    }
}

// PRG-01, META-06: a token in the caller's own metadata is taken over, so that its progress finds the way back.
#[test]
fn a_token_in_the_callers_metadata_is_taken_over() {
    let mut client = Client::plain();
    let params = json(r#"{"_meta":{"progressToken":"mine"}}"#);
    let a = client.conn.request("m", Some(params), options(), client.now).expect("there is room");
    let twice = client.conn.request("m", Some(params), options(), client.now);
    assert_eq!(twice, Err(SendError::TokenInUse));
    assert_eq!(client.wire()[0].matches("progressToken").count(), 1);
    assert_eq!(client.progress("\"mine\"", "1"), Seen::Note(Some(a), note()));
}

// PRG-07, case 057: whatever the numbers do, it is delivered; what is no number is dropped. None of it touches the request.
#[test]
fn odd_progress_is_never_fatal() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    for progress in ["3", "2", "2", "7", "-1", "1e300"] {
        assert_eq!(client.progress("2", progress), Seen::Note(Some(a), note()), "{progress}");
    }
    let invalid = Seen::Dropped(DropReason::Unreadable(UnreadableReason::InvalidMessage), None, None);
    for progress in ["1e400", "\"1\"", "null", "{}"] {
        assert_eq!(client.progress("2", progress), invalid, "{progress}");
    }
    assert_eq!(client.note("notifications/progress", "{}"), invalid);
    assert_eq!(client.feed(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#), invalid);
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
}

// PRG-05: the core keeps no progress: a flood of it is handed through, one event a frame, and nothing grows.
#[test]
fn a_flood_of_progress_keeps_nothing() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    for step in 0..2000 {
        assert_eq!(client.progress("2", &step.to_string()), Seen::Note(Some(a), note()));
        assert_eq!(client.conn.poll_signal(), None);
    }
    assert!(matches!(client.result(2), Seen::Result(..)));
}

// PRG-06: a request that had progress is known to the server, so an error without an id is not about it.
#[test]
fn progress_shows_that_the_server_knows_the_request() {
    let mut client = Client::plain();
    client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    client.progress("2", "1");
    let seen = client.error("null", -32700);
    assert_eq!(seen, Seen::Dropped(DropReason::UnattributedError, None, Some(-32700)));
    assert!(client.signals().is_empty() && client.wire().is_empty());
}

// Progress for a listen is a notification of that listen.
#[test]
fn progress_of_a_listen_is_its_notification() {
    let mut client = Client::plain();
    let mut options = options();
    options.progress = ProgressToken::Minted;
    let l = client.conn.listen(&Filter::default(), options, client.now).expect("there is room");
    client.wire();
    assert_eq!(client.progress("2", "1"), Seen::Note(Some(l), note()));
}
