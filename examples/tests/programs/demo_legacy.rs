//! Raw bytes of legacy clients into `mcp-demo-server`: the handshake, what a session is told, and both eras on one pipe.

use super::support::{On, Program, cancel, request, tool};
use serde_json::{Value, json};

const NONE: [&str; 0] = [];
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn on() -> On {
    On::the_runtime_of(module_path!())
}

fn legacy(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

fn legacy_tool(id: i64, name: &str, arguments: Value) -> String {
    legacy(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

fn initialize(version: &str) -> String {
    let info = json!({"name": "test", "version": "1"});
    legacy(
        0,
        "initialize",
        json!({"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": info}),
    )
}

/// A server with a legacy session.
fn session(version: &str) -> Program {
    let mut program = on().start_demo(NONE);
    program.line(&initialize(version));
    assert_eq!(program.next_json()["result"]["protocolVersion"], version);
    program.line(INITIALIZED);
    program
}

fn text_of(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"))
}

// LEG-03, META-08: the handshake, and answers without anything of the modern era.
#[test]
fn a_legacy_client_is_served() {
    let input = [
        initialize("2025-06-18"),
        INITIALIZED.to_owned(),
        legacy("a", "ping", json!({})),
        legacy(1, "tools/list", json!({})),
        legacy_tool(2, "add", json!({"a": 40, "b": 2})),
        legacy(3, "resources/list", json!({})),
        legacy(4, "resources/read", json!({"uri": "demo://counter"})),
        legacy(5, "resources/read", json!({"uri": "demo://nowhere"})),
        legacy(6, "prompts/list", json!({})),
        legacy(7, "server/discover", json!({})),
    ];
    let ended = on().run_demo(NONE, (input.join("\n") + "\n").as_bytes());
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    for line in &ended.lines {
        assert!(!line.contains("resultType") && !line.contains("io.modelcontextprotocol/"), "{line}");
    }
    let messages = ended.json();
    let result = &messages[0]["result"];
    assert_eq!(
        (&result["protocolVersion"], &result["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("mcp-demo-server"))
    );
    assert_eq!(result["capabilities"]["resources"], json!({"listChanged": false, "subscribe": true}));
    assert_eq!(ended.lines[1], r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
    assert_eq!(messages[2]["result"]["tools"].as_array().map(Vec::len), Some(12));
    assert_eq!(messages[3]["result"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(messages[4]["result"]["resources"].as_array().map(Vec::len), Some(2));
    assert_eq!(messages[5]["result"]["contents"][0]["text"], "0");
    // MSG-11: the code that the legacy era has for it.
    assert_eq!(messages[6]["error"]["code"], -32002);
    assert_eq!((&messages[7]["error"]["code"], &messages[8]["error"]["code"]), (&json!(-32601), &json!(-32601)));
}

// VER-10, VER-11, VER-12: a probe fixes nothing, an early request of no era is refused, and afterwards both eras are served side by side.
#[test]
fn both_eras_share_one_pipe() {
    let input = [
        request(1, "server/discover", json!({})),
        cancel(1),
        legacy(2, "tools/list", json!({})),
        legacy(3, "ping", json!({})),
        initialize("2025-11-25"),
        INITIALIZED.to_owned(),
        tool(4, "echo", json!({"text": "modern"})),
        legacy_tool(5, "echo", json!({"text": "legacy"})),
        request(6, "ping", json!({})),
    ];
    let ended = on().run_demo(NONE, (input.join("\n") + "\n").as_bytes());
    let messages: Vec<Value> = ended.json().into_iter().filter(|message| message["id"] != 1).collect();
    assert!(messages[0]["error"]["message"].as_str().is_some_and(|text| text.contains("protocolVersion")));
    assert_eq!(messages[1], json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    assert_eq!(messages[2]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!((text_of(&messages[3]), &messages[3]["result"]["resultType"]), ("modern", &json!("complete")));
    assert_eq!((text_of(&messages[4]), &messages[4]["result"]["resultType"]), ("legacy", &Value::Null));
    assert_eq!(messages[5]["error"]["code"], -32601);
}

// VER-13: `--era modern` refuses the handshake, with its versions in the text and in the data, and lives on (case 202: server speaks modern only,
// client legacy only); `--era legacy` knows no probe.
#[test]
fn one_era_alone_can_be_chosen() {
    let input = [initialize("2025-11-25"), tool(1, "echo", json!({"text": "x"}))];
    let ended = on().run_demo(["--era", "modern"], (input.join("\n") + "\n").as_bytes());
    assert_eq!(
        ended.lines[0],
        r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"Unsupported protocol version; this server speaks 2026-07-28 without initialize","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}"#
    );
    assert_eq!(text_of(&ended.json()[1]), "x");
    let input =
        [request(1, "server/discover", json!({})), initialize("2024-11-05"), tool(2, "echo", json!({"text": "x"}))];
    let ended = on().run_demo(["--era", "legacy"], (input.join("\n") + "\n").as_bytes());
    let messages = ended.json();
    assert_eq!(messages[0]["error"], json!({"code": -32601, "message": "Method not found"}));
    assert_eq!(messages[1]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!((text_of(&messages[2]), &messages[2]["result"]["resultType"]), ("x", &Value::Null));
}

// LEG-08, SUB-03: a resource that a legacy client subscribed to is told of without a listen.
#[test]
fn a_subscribed_resource_is_told_of() {
    let mut program = session("2025-11-25");
    let touch = |id: i64| legacy_tool(id, "touch", json!({"uri": "demo://counter"}));
    program.line(&touch(1));
    assert_eq!(program.next_json()["id"], 1);
    for (id, method) in [(2, "resources/subscribe"), (4, "resources/unsubscribe")] {
        program.line(&legacy(id, method, json!({"uri": "demo://counter"})));
        assert_eq!(program.next_json(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        program.line(&touch(id + 1));
        if id == 2 {
            assert_eq!(
                program.next().as_deref(),
                Some(
                    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://counter"}}"#
                )
            );
        }
        assert_eq!(program.next_json()["id"], id + 1);
    }
    assert_eq!(program.end().code(), Some(0));
}

// LOG-01: the tool logs at the level of the session.
#[test]
fn logs_go_by_the_level_of_the_session() {
    let mut program = session("2025-11-25");
    let mut logs = |id: i64, level: &str| {
        program.line(&legacy(id, "logging/setLevel", json!({"level": level})));
        program.line(&legacy_tool(id + 1, "log", json!({"count": 2, "level": "warning"})));
        let mut count = 0;
        program.until(|message| {
            count += usize::from(message["method"] == "notifications/message");
            message["id"] == id + 1
        });
        count
    };
    assert_eq!((logs(1, "error"), logs(3, "warning"), logs(5, "debug")), (0, 2, 2));
    program.line(&legacy(7, "logging/setLevel", json!({"level": "loud"})));
    assert_eq!(program.next_json()["error"]["code"], -32602);
}

// LEG-07: the tool that asks the user asks a legacy client while its request waits, under an id of the server's own; CAN-06: cancelled, it is
// answered no more, and the question is given up.
#[test]
fn a_question_goes_to_the_client_while_its_request_waits() {
    let mut program = session("2025-06-18");
    program.line(&legacy_tool(1, "ask", json!({"question": "Why?"})));
    let asked = program.next_json();
    assert_eq!((&asked["id"], &asked["method"]), (&json!(1), &json!("elicitation/create")));
    assert_eq!(asked["params"]["message"], "Why?");
    let answer = |id: i64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    program.line(&answer(1, json!({"action": "accept", "content": {"answer": "Because"}})));
    assert_eq!(text_of(&program.next_json()), "Because");
    program.line(&legacy_tool(2, "ask", json!({"question": "Why?"})));
    program.next();
    program.line(&answer(2, json!({"action": "decline"})));
    assert_eq!(text_of(&program.next_json()), "no answer: decline");
    program.line(&legacy_tool(3, "ask", json!({"question": "Why?"})));
    program.next();
    program.line(&cancel(3));
    assert_eq!(
        program.next().as_deref(),
        Some(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#)
    );
    let ended = program.end();
    assert_eq!((ended.code(), ended.lines.len()), (Some(0), 0));
}

// META-04: a client that did not declare it is not asked.
#[test]
fn a_client_that_cannot_be_asked_is_told_so() {
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let input =
        [legacy(0, "initialize", params), INITIALIZED.to_owned(), legacy_tool(1, "ask", json!({"question": "Why?"}))];
    let ended = on().run_demo(NONE, (input.join("\n") + "\n").as_bytes());
    let error = &ended.json()[1]["error"];
    assert_eq!(error["code"], -32602);
    assert_eq!(error["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
}

// PRG-02, CAN-07, SHD-05: progress and cancellation of a legacy request, and the end of the input.
#[test]
fn progress_cancellation_and_the_end_are_as_in_the_modern_era() {
    let mut program = session("2024-11-05");
    let params = json!({"name": "sleep", "arguments": {"ms": 20, "steps": 2}, "_meta": {"progressToken": "p"}});
    program.line(&legacy(1, "tools/call", params));
    let mut told = Vec::new();
    let last = program.until(|message| {
        told.push(message["params"]["progress"].clone());
        message["id"] == 1
    });
    assert_eq!((text_of(&last), &told[..2]), ("slept 20 ms", &[json!(1), json!(2)][..]));
    program.line(&legacy_tool(2, "sleep", json!({"ms": 600_000})));
    program.line(&cancel(2));
    program.line(&legacy_tool(3, "sleep", json!({"ms": 50})));
    let ended = program.end();
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    assert_eq!(ended.json().iter().map(|message| message["id"].clone()).collect::<Vec<_>>(), [json!(3)]);
}
