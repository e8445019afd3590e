//! Makes JSON and almost JSON from a seed, and reads it the slow and plain way, as a model to compare with.
//! It must not use the code under test.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Random numbers from a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

const SPACES: [&str; 8] = ["", "", "", "", "", " ", "\t", " \r "];
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "1",
    "7",
    "1.0",
    "1e2",
    "1.5",
    "-3",
    "1e-1",
    "150e-1",
    "9007199254740993",
    "1E+400",
    "0.10",
    "12345678901234567890123",
];
const STRINGS: [&str; 16] = [
    "\"\"",
    "\"a\"",
    "\"2.0\"",
    "\"id\"",
    "\"\\u0061\"",
    "\"\\\\\"",
    "\"\\\"}\"",
    "\"é日😀\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"a text that is longer than a block of sixteen bytes\"",
    "\"\\/\\b\\f\\n\\r\\t\"",
    "\"[{,:\"",
    "\"\u{7f}\u{2028}\"",
    "\"lines\\nof running text \\\"quoted\\\" with\\tescapes, long enough for several blocks of sixty-four bytes each, C:\\\\dir\\\\file\\r\\n, \\u00e9\"",
    "\"tools/call\"",
];

/// A value, nested at most `depth` deep.
pub fn value(random: &mut Random, depth: usize, out: &mut String) {
    let kind = random.below(if depth == 0 { 4 } else { 7 });
    match kind {
        0 => out.push_str(random.pick(&NUMBERS)),
        1 | 2 => out.push_str(random.pick(&STRINGS)),
        3 => out.push_str(random.pick(&["true", "false", "null"])),
        _ => {
            let object = kind > 4;
            out.push(if object { '{' } else { '[' });
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(random.pick(&SPACES));
                if object {
                    out.push_str(random.pick(&STRINGS));
                    out.push_str(random.pick(&SPACES));
                    out.push(':');
                    out.push_str(random.pick(&SPACES));
                }
                value(random, depth - 1, out);
                out.push_str(random.pick(&SPACES));
            }
            out.push(if object { '}' } else { ']' });
        }
    }
}

/// A line that is a message, or could be one.
pub fn line(random: &mut Random) -> String {
    let mut members = vec!["\"jsonrpc\":\"2.0\"".to_owned()];
    let id = |random: &mut Random| {
        let mut text = "\"id\":".to_owned();
        if random.once_in(4) {
            value(random, 1, &mut text);
        } else {
            text.push_str(random.pick(&["1", "42", "\"x\"", "1.50e1", "\"\\u0061\"", "null"]));
        }
        text
    };
    let payload = |name: &str, random: &mut Random| {
        let mut text = format!("\"{name}\":");
        value(random, 3, &mut text);
        text
    };
    if !random.once_in(4) {
        members.push(id(random));
    }
    match random.below(4) {
        0 => members.push(payload("result", random)),
        1 => {
            let code = random.pick(&["-32600", "1.0", "1.5", "\"1\"", "99999999999999999999", "0"]);
            let message = random.pick(&["\"m\"", "\"\\ud800\"", "null", "\"\\n\""]);
            let mut text = format!("\"error\":{{\"code\":{code},\"message\":{message}");
            if random.once_in(3) {
                text.push_str(",\"data\":");
                value(random, 2, &mut text);
            }
            text.push('}');
            members.push(text);
        }
        _ => {
            members.push(format!(
                "\"method\":{}",
                random.pick(&["\"ping\"", "\"p\\u0069ng\"", "\"\\ud800\"", "7", "\"\""])
            ));
            if random.once_in(2) {
                members.push(payload("params", random));
            }
        }
    }
    if random.once_in(6) {
        let name = random.pick(&[
            "id",
            "method",
            "result",
            "error",
            "params",
            "jsonrpc",
            "Method",
            "re\\u017fult",
            "\\u0069d",
            "x",
        ]);
        members.push(payload(name, random));
    }
    if random.once_in(10) {
        members.remove(random.below(members.len()));
    }
    if random.once_in(3) && !members.is_empty() {
        let (a, b) = (random.below(members.len()), random.below(members.len()));
        members.swap(a, b);
    }
    let mut line = random.pick(&SPACES).to_owned();
    line.push('{');
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            line.push(',');
        }
        line.push_str(random.pick(&SPACES));
        line.push_str(member);
        line.push_str(random.pick(&SPACES));
    }
    line.push('}');
    line.push_str(random.pick(&SPACES));
    line
}

/// Damages a line in up to three places. It stays one line.
pub fn mutate(random: &mut Random, line: &mut Vec<u8>) {
    const BYTES: &[u8] =
        b"{}[]\",:\\/ \t\r0123456789eE+-.untrfalsid\x00\x1f\x7f\x80\xa9\xc3\xe2\xed\xf0\xff\xef\xbb\xbf";
    for _ in 0..random.below(4) {
        let at = random.below(line.len().max(1));
        match random.below(4) {
            0 if !line.is_empty() => line[at] = BYTES[random.below(BYTES.len())],
            1 if !line.is_empty() => {
                line.remove(at);
            }
            2 if !line.is_empty() => {
                let end = (at + random.below(12)).min(line.len());
                let piece = line[at..end].to_vec();
                let to = random.below(line.len());
                line.splice(to..to, piece);
            }
            _ => line.insert(at.min(line.len()), BYTES[random.below(BYTES.len())]),
        }
    }
}

/// The members of an object, repeated ones too.
pub struct Members<'a>(pub Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Whether it is one JSON value, of any depth.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// How deep valid JSON is nested.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut string, mut escape) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escape => escape = false,
            b'\\' if string => escape = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// The value of a JSON number if it is an integer, written out as far as 5000 zeros.
pub fn integer(token: &str) -> Option<String> {
    let (sign, rest) = token.strip_prefix('-').map_or(("", token), |rest| ("-", rest));
    if !rest.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    let shift = exponent
        .parse::<i64>()
        .unwrap_or_else(|_| if exponent.starts_with('-') { -9999 } else { 9999 })
        .clamp(-9999, 9999)
        - i64::try_from(fraction.len()).expect("small");
    for _ in 0..shift.clamp(0, 5000) {
        digits.push('0');
    }
    for _ in 0..(-shift).clamp(0, 5000) {
        if digits.pop().is_some_and(|digit| digit != '0') {
            return None;
        }
    }
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") })
}
