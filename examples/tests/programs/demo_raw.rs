//! Raw bytes into `mcp-demo-server`: each line gets what the rules say, and nothing else comes out.

use std::collections::BTreeMap;
use std::io::Write;

use super::support::{DEMO, On, Program, cancel, request, tool};
use serde_json::{Value, json};

const NONE: [&str; 0] = [];

fn on() -> On {
    On::the_runtime_of(module_path!())
}

/// Runs the server on these bytes to the end of its input.
fn answers(input: &[u8]) -> Vec<String> {
    let ended = on().run_demo(NONE, input);
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    ended.lines
}

fn text_of(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"))
}

// UNR-01, UNR-03: bytes that are no UTF-8 cost that line; the answer carries the id where one can be found, and null elsewhere.
#[test]
fn invalid_utf8_costs_one_line() {
    let mut input = b"\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\xff\"}\n".to_vec();
    writeln!(input, "{}", tool(5, "echo", json!({"text": "still here"}))).expect("memory");
    let lines = answers(&input);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#);
    assert_eq!(lines[1], r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32700,"message":"Parse error"}}"#);
    assert!(lines[2].contains("still here"));
}

// UNR-02, UNR-03, LIM-01: a line of 20 MiB is refused with the id that stands behind its payload; without an id nothing is answered.
#[test]
fn a_line_too_long_is_refused_with_the_id_at_its_end() {
    let mut input = br#"{"jsonrpc":"2.0","method":"tools/call","params":{"x":""#.to_vec();
    input.resize(20 << 20, b'a');
    let without_id = [&input[..], b"\"}}\n"].concat();
    input.extend_from_slice(b"\"},\"id\":7}\n");
    input.extend_from_slice(&without_id);
    writeln!(input, "{}", tool(8, "echo", json!({"text": "still here"}))).expect("memory");
    let lines = answers(&input);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        lines[0],
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Message too large","data":{"limit":16777216}}}"#
    );
    assert!(lines[1].contains("still here"));
}

// MSG-01: an array is no message of this revision. META-02: a request without metadata is refused with its id, naming the first missing
// field. MSG-08, CAN-08: notifications get no answer, known or not, malformed or not.
#[test]
fn what_is_no_request_of_this_revision_is_refused_or_ignored() {
    let input = concat!(
        "[]\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":999}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n",
        "\n\r\n  \n",
    );
    let lines = answers(input.as_bytes());
    let expected = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: missing _meta field io.modelcontextprotocol/protocolVersion"}}"#,
    ];
    assert_eq!(lines, expected);
}

// MSG-07: an id that is in flight starts no second handler, and the answer to the second has no id, so the first is not answered by mistake.
#[test]
fn a_duplicate_id_starts_no_second_handler() {
    let first = tool(1, "sleep", json!({"ms": 200}));
    let second = tool(1, "echo", json!({"text": "never"}));
    let lines = answers(format!("{first}\n{second}\n").as_bytes());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#);
    let result: Value = serde_json::from_str(&lines[1]).expect("JSON");
    assert_eq!((&result["id"], text_of(&result)), (&json!(1), "slept 200 ms"));
}

// LIM-02, CAN-06, CAN-09, SHD-05: of 600 requests at once 256 run, as many wait, the rest are refused at once; a cancelled one is
// answered no more (unless it was refused before); all others are answered once, also after the end of the input.
#[test]
fn six_hundred_at_once_with_cancellations_are_each_answered_once_or_silent() {
    let mut input = String::new();
    for id in 0..600 {
        input += &tool(id, "sleep", json!({"ms": 1000}));
        input.push('\n');
    }
    // After all of them, or their places would go to others.
    for id in (2..600).step_by(4) {
        input += &cancel(id);
        input.push('\n');
    }
    let ended = on().run_demo(NONE, input.as_bytes());
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    let mut answers: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for message in ended.json() {
        answers.entry(message["id"].as_i64().expect("an id of ours")).or_default().push(message);
    }
    let (mut slept, mut refused) = (0, 0);
    for id in 0..600 {
        let cancelled = id % 4 == 2;
        match answers.remove(&id).unwrap_or_default().as_slice() {
            [] => assert!(cancelled, "{id} has no answer"),
            [one] if one["error"] == json!({"code": -32603, "message": "Server busy"}) => refused += 1,
            [one] => {
                assert!(!cancelled, "{id} was cancelled: {one}");
                assert_eq!(text_of(one), "slept 1000 ms");
                slept += 1;
            }
            more => panic!("{id} has {} answers", more.len()),
        }
    }
    assert!(answers.is_empty(), "answers to nobody: {answers:?}");
    // 256 run and 256 wait; each cancellation makes room for at most one more.
    assert!((384..=450).contains(&slept), "{slept} were served");
    assert!(refused > 0 && slept + refused >= 450, "{slept} were served, {refused} refused");
}

// LIM-02: with a limit of two, two run, two wait, and the fifth is refused while reading goes on.
#[test]
fn a_full_house_refuses() {
    let input: String = (1..=5).map(|id| tool(id, "sleep", json!({"ms": 100})) + "\n").collect();
    let ended = on().run_demo(["--max-in-flight", "2"], input.as_bytes());
    let messages = ended.json();
    assert_eq!(messages[0], json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32603, "message": "Server busy"}}));
    assert_eq!(messages[1..].iter().filter(|message| message.get("result").is_some()).count(), 4);
}

// LOG-04: what a handler or its child prints goes to stderr and tears no frame.
#[test]
fn stray_prints_do_not_reach_the_wire() {
    let input = format!(
        "{}\n{}\n",
        tool(1, "print", json!({"text": "printed by a library"})),
        tool(2, "spawn_echo", json!({"text": "printed by a child"}))
    );
    let ended = on().run_demo(NONE, input.as_bytes());
    assert_eq!(ended.code(), Some(0));
    assert_eq!(ended.json().len(), 2, "{:?}", ended.lines);
    let printed: Vec<_> = ended.stderr.lines().map(str::trim_end).collect();
    assert_eq!(printed, ["printed by a library", "printed by a child"]);
    // Without the guard both stand between the messages: the option does what it says.
    let ended = on().run_demo(["--no-stdout-guard"], input.as_bytes());
    for text in ["printed by a child", "printed by a library"] {
        assert!(ended.lines.iter().any(|line| line.trim_end() == text), "{:?}", ended.lines);
    }
}

// A panic ends its request with -32603 and nothing else.
#[test]
fn a_panic_ends_its_request_only() {
    let input = format!("{}\n{}\n", tool(1, "panic", json!({})), tool(2, "add", json!({"a": 40, "b": 2})));
    let ended = on().run_demo(NONE, input.as_bytes());
    let messages = ended.json();
    assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(messages[1]["result"]["structuredContent"], json!({"sum": 42}));
    assert!(ended.stderr.contains("the tool `panic` was called"));
}

// META-04: the tool that asks the user needs the client to be able to; MSG-15: the second round brings the answer.
#[test]
fn a_question_takes_a_capability_and_two_rounds() {
    let mut program = on().start_demo(NONE);
    program.line(&tool(1, "ask", json!({"question": "Why?"})));
    assert_eq!(
        program.next_json()["error"],
        json!({
            "code": -32021,
            "message": "Missing required client capability",
            "data": {"requiredCapabilities": {"elicitation": {}}},
        })
    );
    let ask = |id: i64, more: Value| {
        let mut params = json!({"name": "ask", "arguments": {"question": "Why?"}});
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let mut request: Value = serde_json::from_str(&request(id, "tools/call", params)).expect("JSON");
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        request.to_string()
    };
    program.line(&ask(2, json!({})));
    let first = program.next_json();
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(first["result"]["inputRequests"]["answer"]["method"], "elicitation/create");
    let responses = json!({"answer": {"action": "accept", "content": {"answer": "Because"}}});
    program.line(&ask(3, json!({"inputResponses": responses, "requestState": first["result"]["requestState"]})));
    let second = program.next_json();
    assert_eq!((text_of(&second), &second["result"]["resultType"]), ("Because", &json!("complete")));
    program.line(&ask(4, json!({"inputResponses": responses, "requestState": "forged"})));
    assert_eq!(program.next_json()["error"]["code"], -32602);
    assert_eq!(program.end().code(), Some(0));
}

// LOG-01: log messages go to the request that asked for that level only.
#[test]
fn logs_need_a_level() {
    let logs = |level: Option<&str>| {
        let mut request: Value =
            serde_json::from_str(&tool(1, "log", json!({"count": 2, "level": "warning"}))).expect("JSON");
        if let Some(level) = level {
            request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        answers(format!("{request}\n").as_bytes()).len() - 1
    };
    assert_eq!((logs(None), logs(Some("error")), logs(Some("warning")), logs(Some("debug"))), (0, 0, 2, 2));
}

// SUB-01 to SUB-04: the acknowledgment comes first, with what is honoured; a change of the subscribed resource follows; SUB-07: at the end of the
// input the result, then the cancellation.
#[test]
fn a_listen_is_acknowledged_told_and_ended() {
    let listen = request(
        "L1",
        "subscriptions/listen",
        json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["demo://counter"],
        }}),
    );
    let touch = |id: i64, uri: &str| tool(id, "touch", json!({"uri": uri}));
    let mut program = on().start_demo(NONE);
    program.line(&listen);
    assert_eq!(
        program.next().as_deref(),
        Some(
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["demo://counter"]}}}"#
        )
    );
    program.line(&touch(1, "demo://clock"));
    assert_eq!(program.next_json()["id"], 1, "a change nobody subscribed to is told to nobody");
    program.line(&touch(2, "demo://counter"));
    assert_eq!(
        program.next().as_deref(),
        Some(
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"uri":"demo://counter"}}"#
        )
    );
    assert_eq!(program.next_json()["id"], 2);
    program.line(&request(3, "resources/read", json!({"uri": "demo://counter"})));
    assert_eq!(program.next_json()["result"]["contents"][0]["text"], "1");
    let ended = program.end();
    assert_eq!(ended.code(), Some(0));
    let last = ended.json();
    assert_eq!((&last[0]["id"], &last[0]["result"]["resultType"]), (&json!("L1"), &json!("complete")));
    assert_eq!(
        ended.lines[1..],
        [
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"requestId":"L1","reason":"server shutdown"}}"#
        ]
    );
}

#[test]
fn what_is_not_there_is_said_so() {
    let input = [
        request(1, "prompts/list", json!({})),
        request(2, "resources/read", json!({"uri": "demo://nowhere"})),
        tool(3, "nosuch", json!({})),
        tool(4, "echo", json!({"text": 7})),
        request(5, "tools/list", json!({"cursor": "x"})),
    ];
    let ended = on().run_demo(NONE, (input.join("\n") + "\n").as_bytes());
    let messages = ended.json();
    assert_eq!(messages[0]["error"], json!({"code": -32601, "message": "Method not found"}));
    assert_eq!(
        (&messages[1]["error"]["code"], &messages[1]["error"]["data"]["uri"]),
        (&json!(-32602), &json!("demo://nowhere"))
    );
    assert_eq!(messages[2]["error"]["code"], -32602);
    assert_eq!(messages[3]["result"]["isError"], true, "arguments that do not fit are for the model to mend");
    assert_eq!(messages[4]["error"]["code"], -32602);
}

// SIGTERM is the end of input without a drain: a handler that does not stop is told that the server shuts down, and the process ends by itself.
#[test]
fn sigterm_ends_it_without_a_drain() {
    let mut program = on().start_demo(NONE);
    program.line(&request("L1", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})));
    assert_eq!(program.next_json()["method"], "notifications/subscriptions/acknowledged");
    program.line(&tool(1, "sleep", json!({"ms": 600_000, "ignore_cancel": true})));
    // Its answer shows that the line before it was taken.
    program.line(&tool(2, "echo", json!({"text": "x"})));
    assert_eq!(program.next_json()["id"], 2);
    program.signal("TERM");
    let mut messages = Vec::new();
    while let Some(line) = program.next() {
        messages.push(serde_json::from_str::<Value>(&line).expect("JSON"));
    }
    let ended = program.end();
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&json!("L1"), &Value::Null, &json!(1)], "{messages:?}");
    assert_eq!(messages[2]["error"], json!({"code": -32603, "message": "Server shutting down"}));
}

// SHD-05: when the drain is over the rest is told so, and the process ends.
#[test]
fn the_drain_is_bounded() {
    let input = tool(1, "sleep", json!({"ms": 600_000, "ignore_cancel": true})) + "\n";
    let ended = on().run_demo(["--drain", "100"], input.as_bytes());
    assert_eq!(ended.code(), Some(0));
    assert_eq!(ended.json()[0]["error"], json!({"code": -32603, "message": "Server shutting down"}));
}

// SHD-07: a client that is gone ends the serving, with status 1 and one line on stderr.
#[test]
fn a_vanished_reader_ends_it() {
    let mut command = std::process::Command::new("sh");
    // The reader of its output ends at once.
    command.args(["-c", "{ \"$0\" --runtime \"$1\"; echo \"status $?\" >&2; } | :", DEMO, on().runtime()]);
    let mut program = Program::spawn(command);
    let mut stdin = program.stdin.take().expect("open");
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Until it does not read any more.
            while stdin.write_all((tool(1, "echo", json!({"text": "x"})) + "\n").as_bytes()).is_ok() {}
        });
        program.end()
    });
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("mcp-demo-server: ") && lines[1] == "status 1", "{lines:?}");
}

#[test]
fn exit_ends_the_process_at_once() {
    let ended = on().run_demo(NONE, (tool(1, "exit", json!({"code": 7})) + "\n").as_bytes());
    assert_eq!((ended.code(), ended.lines.len()), (Some(7), 0));
}

// case 093: a thousand progress notifications, an answer of 1 MiB and a flood of other requests, by a client that reads none of it until it has
// written all: nobody waits for anybody in a circle
#[test]
fn progress_large_answers_and_a_flood_pass_each_other() {
    let mut steps: Value =
        serde_json::from_str(&tool("steps", "sleep", json!({"ms": 100, "steps": 1000}))).expect("JSON");
    steps["params"]["_meta"]["progressToken"] = json!("p");
    let mut input = format!("{steps}\n{}\n", tool("big", "big", json!({"bytes": 1 << 20})));
    for id in 0..2000 {
        input += &tool(id, "echo", json!({"text": "x"}));
        input.push('\n');
    }
    let ended = on().run_demo(["--max-in-flight", "4000"], input.as_bytes());
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    let messages = ended.json();
    assert_eq!(messages.iter().filter(|message| message.get("result").is_some()).count(), 2002);
    let last = messages.iter().rfind(|message| message["method"] == "notifications/progress");
    assert_eq!(last.expect("there was progress")["params"]["progress"], 1000);
}

// case 219: whoever started the server has gone, and its parent is somebody else; it serves on until its input ends, whatever pid a client names
#[test]
fn the_end_of_the_parent_is_not_the_end_of_the_server() {
    let mut command = std::process::Command::new("sh");
    let script = "exec 3<&0; { read go < \"$2\"; exec \"$0\" --runtime \"$1\"; } <&3 3<&- & exit 0";
    let fifo = std::env::temp_dir().join(format!("mcp-demo-{}-{}-fifo", std::process::id(), on().runtime()));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo runs").success());
    command.args(["-c", script, DEMO, on().runtime()]).arg(&fifo);
    let mut program = Program::spawn(command);
    program.waits();
    // Its parent has gone; only now does it start.
    std::fs::write(&fifo, "go\n").expect("it waits");
    let _ = std::fs::remove_file(fifo);
    let mut request: Value = serde_json::from_str(&tool(1, "echo", json!({"text": "x"}))).expect("JSON");
    request["params"]["_meta"]["processId"] = json!(999_999);
    program.line(&request.to_string());
    assert_eq!(text_of(&program.next_json()), "x");
    program.close_stdin();
    assert_eq!(program.next(), None, "it ends with its input");
}

// case 221: whatever comes first is looked at as it comes: nothing at all, an empty line, a ping, a signal
#[test]
fn nothing_is_waited_for_before_the_first_message() {
    let ended = on().run_demo(NONE, b"");
    assert_eq!((ended.code(), ended.lines.len()), (Some(0), 0));
    let ended = on().run_demo(NONE, b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!((ended.code(), ended.lines.len()), (Some(0), 1));
    assert_eq!(ended.json()[0]["id"], 1);
    let mut program = on().start_demo(NONE);
    program.line(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(program.next_json()["id"], 1, "with its input still open");
    program.signal("TERM");
    assert_eq!(program.next(), None);
    assert_eq!(program.end().code(), Some(0));
}

// case 065: a cancellation in the same write as its request finds it, and the work stops: the server does not sleep to its end
#[test]
fn a_cancellation_right_behind_its_request_finds_it() {
    let asked = format!("{}\n{}\n", tool(4, "sleep", json!({"ms": 600_000})), cancel(4));
    let echo = tool(5, "echo", json!({"text": "still here"}));
    let lines = answers(format!("{asked}{echo}\n").as_bytes());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("still here"));
}

// case 073, FRM-09: a client that dies in the middle of a line leaves no server behind; what of it had an id is answered, for who may still listen
#[test]
fn half_a_line_at_the_end_ends_the_server() {
    let half = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#;
    let mut input = half.as_bytes().to_vec();
    input.resize(1 << 20, b'a');
    let lines = answers(&input);
    assert_eq!(lines, [r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error"}}"#]);
}
