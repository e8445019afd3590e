//! Tests of the command line of `mcp-call`.

use super::*;

fn parse_words(words: &str) -> Result<Arguments, UsageError> {
    parse(words.split(' ').map(OsString::from))
}

fn options(words: &str) -> Options {
    let Task::Call { options, .. } = parse_words(words).expect("a good command line").task else { panic!("a call") };
    *options
}

#[test]
fn the_servers_arguments_are_left_alone() {
    let Task::Call { command, .. } = parse_words("x/y -- server --json -- --help").expect("good").task else {
        panic!("a call")
    };
    assert_eq!(command, ["server", "--json", "--", "--help"]);
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let options = options("tools/list -- s");
    assert_eq!(options.timeout, Duration::from_secs(60));
    assert_eq!(options.probe_timeout, Duration::from_secs(10));
    assert_eq!(options.grace, Duration::from_secs(2));
    assert_eq!((options.max_line, options.restarts, options.idle_stop), (16_777_216, 0, None));
    assert_eq!((options.lazy, options.process_group, options.progress), (false, true, false));
    assert_eq!((options.environment, options.stderr), (Environment::Inherit, Stderr::Tee));
}

// VER-04: the era is asked for unless it is given.
#[test]
fn the_era_can_be_given() {
    for (words, eras) in
        [("a -- s", Eras::Dual), ("a --era auto -- s", Eras::Dual), ("a --era legacy -- s", Eras::Legacy)]
    {
        assert_eq!(options(words).eras, eras);
    }
    assert_eq!(options("a --era modern --protocol 2025-06-18 -- s").protocol, "2025-06-18");
}

// case 080: a start may take its time, but who sets short times does not want to wait two minutes for silence.
#[test]
fn short_times_shorten_the_start() {
    let start = |words: &str| options(words).start_timeout.as_millis();
    assert_eq!(start("a -- s"), 120_000);
    assert_eq!(start("a --probe-timeout 300 -- s"), 10_300);
    assert_eq!(start("a --probe-timeout 300 --timeout 500 -- s"), 10_000);
    assert_eq!(start("a --timeout 30000 -- s"), 40_000);
    assert_eq!(start("a --timeout 600000 -- s"), 120_000);
    assert_eq!(start("a --timeout 1 --start-timeout 5 -- s"), 5);
}

// TMO-02, TMO-03: progress restarts the clock only under a ceiling, and a ceiling below the timeout says nothing.
#[test]
fn a_ceiling_asks_for_progress_and_is_not_below_the_timeout() {
    let with = options("a --timeout 10 --max-timeout 10 -- s");
    assert_eq!((with.max_timeout, with.progress), (Some(Duration::from_millis(10)), true));
    let without = options("a --max-timeout 0 -- s");
    assert_eq!((without.max_timeout, without.progress), (None, false));
    assert!(parse_words("a --max-timeout 9 --timeout 10 -- s").is_err());
    assert!(parse_words("a --max-timeout 59999 -- s").is_err());
}

#[test]
fn a_mistake_is_one_sentence() {
    let cases = [
        "",
        "tools/list",
        "tools/list --",
        "-- s",
        "a [1] -- s",
        "a {] -- s",
        "a {} {} -- s",
        "a --script f -- s",
        "--nope -- s",
        "-x a -- s",
        "a --timeout -- s",
        "a --timeout x -- s",
        "a --timeout -1 -- s",
        "a --era old -- s",
        "a --runtime threads -- s",
        "a --runtime x -- s",
        "a --max-line 0 -- s",
        "a --idle-stop 0 -- s",
        "a --env none -- s",
        "a --stderr x -- s",
        "a --protocol new -- s",
        "--script /nowhere/at/all -- s",
        "--replay f -- s",
        "--replay f a",
        "--replay f --timeout 1",
        "a --json=x -- s",
        "a --capabilities [] -- s",
        "a --capabilities {] -- s",
        "subscriptions/listen -- s",
    ];
    for words in cases {
        let error = parse_words(words).expect_err(words).to_string();
        assert!(!error.is_empty() && !error.contains('\n'), "{words}: {error}");
    }
}

#[test]
fn params_over_several_lines_become_one() {
    let arguments = ["a", "{\n\"x\":\r\n\"y\\n\"}", "--", "s"].map(OsString::from);
    let Task::Call { work: Work::Script { ops, .. }, .. } = parse(arguments).expect("good").task else {
        panic!("a call")
    };
    let Op::Request { params: Some(params), .. } = &ops[0] else { panic!("a request") };
    assert_eq!(params.as_json().get(), "{ \"x\":  \"y\\n\"}");
}

#[test]
fn letters_add_up() {
    assert_eq!(parse_words("-vv a -- s").expect("good").verbose, 2);
    assert_eq!(parse_words("-v --json -v a -- s").expect("good").verbose, 2);
    assert!(parse_words("--json --replay f").expect("good").json);
}
