//! Owns the traffic that the benches decode: lines as servers send them, the same bytes on every run and machine.
//! It must not know who decodes them.
#![allow(dead_code, reason = "each bench uses a part of it")]

/// Random numbers: xorshift with a multiplier, so that the corpus needs no crate and never changes.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// A tool result of a line of text.
    Small,
    /// A notification: progress or a log message.
    Note,
    /// A `tools/list` result of 4 to 30 KiB.
    List,
    /// A tool result of 100 KiB to 1 MiB: text with escapes, base64, or both.
    Large,
}

const WORDS: [&str; 28] = [
    "server",
    "result",
    "file",
    "path",
    "value",
    "schema",
    "index",
    "query",
    "token",
    "branch",
    "commit",
    "error",
    "status",
    "naïve",
    "größe",
    "日本語",
    "данные",
    "über",
    "line",
    "column",
    "the",
    "of",
    "and",
    "to",
    "is",
    "in",
    "for",
    "with",
];
const META: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0.0"}}"#;

fn words(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(WORDS[random.within(0, WORDS.len() - 1)]);
        text.push(' ');
    }
    text
}

fn base64(random: &mut Random, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes).map(|_| char::from(LETTERS[(random.next() >> 58) as usize])).collect()
}

/// A file or a log as it stands in a tool result: lines, tabs, quotes, here and there `\u` escapes.
fn escaped(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        let n = random.within(20, 90);
        text.push_str(&words(random, n));
        text.push_str(match random.within(0, 9) {
            0..=4 => "\\n",
            5 => "\\t\\\"quoted\\\" ",
            6 => "C:\\\\dir\\\\file.rs\\r\\n",
            7 => "\\u00e9\\ud83d\\ude00 ",
            _ => "\\n    ",
        });
    }
    text
}

fn tools(random: &mut Random) -> String {
    let target = random.within(4 << 10, 30 << 10);
    let mut tools = String::new();
    for i in 0.. {
        if tools.len() >= target {
            break;
        }
        if i > 0 {
            tools.push(',');
        }
        let (about, path, mode) = (words(random, 180), words(random, 60), words(random, 40));
        tools.push_str(&format!(
            r#"{{"name":"tool_{i}","title":"Tool {i}","description":"{about}","inputSchema":{{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{{"path":{{"type":"string","description":"{path}"}},"limit":{{"type":"integer","minimum":1,"maximum":1000,"default":50}},"mode":{{"type":"string","enum":["a","b","c"],"description":"{mode}"}}}},"required":["path"],"additionalProperties":false}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#
        ));
    }
    tools
}

fn content(random: &mut Random) -> String {
    let n = random.within(100 << 10, 1 << 20);
    let (binary, text) = match random.within(0, 2) {
        0 => (n, 0),
        1 => (0, n),
        _ => (n / 2, n / 2),
    };
    let mut content = Vec::new();
    if text > 0 {
        content.push(format!(r#"{{"type":"text","text":"{}"}}"#, escaped(random, text)));
    }
    if binary > 0 {
        content.push(format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, base64(random, binary & !3)));
    }
    content.join(",")
}

/// One line, without its line end.
fn line(random: &mut Random, kind: Kind, id: usize) -> String {
    match kind {
        Kind::Small => {
            let n = random.within(0, 230);
            let text = words(random, n);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}],{META}}}}}"#
            )
        }
        Kind::Note if random.within(0, 1) == 0 => {
            let text = words(random, 60);
            let progress = random.within(0, 100);
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{progress},"total":100,"message":"{text}"}}}}"#
            )
        }
        Kind::Note => {
            let text = words(random, 60);
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"bench.worker","data":{{"msg":"{text}","n":{id}}}}}}}"#
            )
        }
        Kind::List => {
            let tools = tools(random);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{tools}],{META}}}}}"#
            )
        }
        Kind::Large => {
            let content = content(random);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{content}],{META}}}}}"#
            )
        }
    }
}

/// `lines` lines, each with its LF: of the kinds in `only`, or mixed 60 : 25 : 10 : 5.
pub(crate) fn corpus(lines: usize, only: &[Kind]) -> Vec<u8> {
    let mut random = Random::new(0x5EED_2026);
    let mut bytes = Vec::new();
    for id in 0..lines {
        let kind = if only.is_empty() {
            match random.within(0, 99) {
                0..=59 => Kind::Small,
                60..=84 => Kind::Note,
                85..=94 => Kind::List,
                _ => Kind::Large,
            }
        } else {
            only[random.within(0, only.len() - 1)]
        };
        bytes.extend_from_slice(line(&mut random, kind, id).as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// One result line whose text is `mib` MiB of prose with quotes, line breaks and letters beyond ASCII.
pub(crate) fn long_line(mib: usize) -> Vec<u8> {
    let phrase = r#"The quick \"brown\" fox — naïve café\n"#;
    let text = phrase.repeat((mib << 20).div_ceil(phrase.len()));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
    .into_bytes()
}
