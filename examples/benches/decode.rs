//! Decoding the lines of a server: this library against the floor and against peers, as ratios from one run.
//!
//! `cargo bench -p mcp-wire-examples --bench decode -- [SECTION] [ROUNDS]`; sections are `mix`, `small`, `list`, `large`, `bytewise`
//! and `long`. The floor F finds the lines with memchr and checks them with simdutf8, and does nothing else. Each round runs
//! every row once, so that a busy machine slows all of them alike.

#[path = "support/corpus.rs"]
mod corpus;

use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use corpus::{Kind, corpus, long_line};
use mcp_wire::{Message, RecvBuffer, client};
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::async_rw::JsonRpcMessageCodec;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::codec::{Decoder, LinesCodec};

/// What a read from a pipe gives at most.
const CHUNK: usize = 64 << 10;
/// Lines longer than the default limit are part of the comparison.
const LIMIT: usize = 256 << 20;
const NOW: mcp_wire::Instant = mcp_wire::Instant::from_epoch(Duration::ZERO);

/// A way to decode: what it needs is made before the clock starts. Gives the number of lines it found.
struct Row {
    name: &'static str,
    run: fn(&[u8], usize, usize) -> (Duration, usize),
}

const ROWS: [Row; 6] = [
    Row { name: "floor F: memchr, simdutf8", run: floor },
    Row { name: "mcp-wire: RecvBuffer", run: messages },
    Row { name: "mcp-wire: RecvBuffer, client event", run: events },
    Row { name: "LinesCodec, serde_json envelope", run: envelope },
    Row { name: "LinesCodec, serde_json::Value", run: values },
    Row { name: "rmcp JsonRpcMessageCodec", run: rmcp_codec },
];

fn timed(run: impl FnOnce() -> usize) -> (Duration, usize) {
    let start = Instant::now();
    let lines = run();
    (start.elapsed(), lines)
}

fn floor(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    timed(|| {
        let (mut lines, mut carry) = (0, Vec::new());
        let mut check = |line: &[u8]| {
            black_box(simdutf8::basic::from_utf8(line).expect("the corpus is text"));
            lines += 1;
        };
        for mut piece in data.chunks(chunk) {
            while let Some(end) = memchr::memchr(b'\n', piece) {
                if carry.is_empty() {
                    check(&piece[..end]);
                } else {
                    carry.extend_from_slice(&piece[..end]);
                    check(&carry);
                    carry.clear();
                }
                piece = &piece[end + 1..];
            }
            carry.extend_from_slice(piece);
        }
        lines
    })
}

fn messages(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    let mut recv = RecvBuffer::new(LIMIT);
    timed(|| {
        let mut lines = 0;
        for piece in data.chunks(chunk) {
            recv.extend(piece);
            while let Some(frame) = recv.next_frame() {
                let message = frame.message();
                assert!(!matches!(message, Message::Unreadable(_)), "the corpus is messages");
                black_box(message);
                lines += 1;
            }
        }
        lines
    })
}

/// Every line becomes an event. The requests that a read answers are made before it, with the clock stopped: as many are in flight as a
/// client has that sends while it waits, not as many as the corpus has lines.
fn events(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    let mut config = client::Config::new("bench", "1.0");
    config.known_version = Some(mcp_wire::config::PROTOCOL_VERSION.to_owned());
    config.in_flight_limit = 1 << 20;
    let mut connection = client::Connection::new(config).expect("a good configuration");
    connection.opened(NOW);
    // Looked up beforehand, so that no byte is in a cache that would not be there for the others.
    let answered: Vec<u64> = data.chunks(CHUNK).map(last_id).collect();
    let mut recv = RecvBuffer::new(LIMIT);
    let (mut lines, mut asked, mut time) = (0, 0, Duration::ZERO);
    // Byte by byte, the clock is still read for each block only.
    for (block, last) in data.chunks(CHUNK).zip(answered) {
        let handles: Vec<client::Handle> = (asked + 1..=last).map(|_| ask(&mut connection)).collect();
        asked = asked.max(last);
        let start = Instant::now();
        for piece in block.chunks(chunk) {
            recv.extend(piece);
            while let Some(frame) = recv.next_frame() {
                black_box(connection.handle(frame.message(), NOW));
                while connection.poll_signal().is_some() {}
                lines += 1;
            }
        }
        time += start.elapsed();
        // Ids that belong to notifications were asked for too, and would pile up.
        for handle in handles {
            connection.cancel(handle, None, NOW);
        }
        while connection.poll_signal().is_some() {}
        write_all(&mut connection);
    }
    (time, lines)
}

/// The last id that a line of this block answers; 0 if there is none.
fn last_id(block: &[u8]) -> u64 {
    let mut ids = block.split(|&byte| byte == b'\n').rev().filter_map(|line| {
        let digits = line.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
    });
    ids.next().unwrap_or(0)
}

/// A request that is written at once.
fn ask(connection: &mut client::Connection) -> client::Handle {
    let options = client::RequestOptions::default();
    let handle = connection.request("tools/call", None, options, NOW).expect("there is room");
    write_all(connection);
    handle
}

fn write_all(connection: &mut client::Connection) {
    while let Some(spent) = connection.take_output(NOW) {
        connection.accepted(spent.len(), NOW);
        connection.recycle(spent);
    }
}

/// The least that a protocol must know of a line.
#[derive(Deserialize)]
#[allow(dead_code, reason = "what is read counts, not what becomes of it")]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn by_lines(data: &[u8], chunk: usize, mut on_line: impl FnMut(&str)) -> (Duration, usize) {
    timed(|| {
        let (mut lines, mut codec, mut buffer) = (0, LinesCodec::new(), BytesMut::new());
        for piece in data.chunks(chunk) {
            buffer.extend_from_slice(piece);
            while let Some(line) = codec.decode(&mut buffer).expect("the corpus is text") {
                on_line(&line);
                lines += 1;
            }
        }
        lines
    })
}

fn envelope(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    by_lines(data, chunk, |line| {
        black_box(serde_json::from_str::<Envelope<'_>>(line).expect("the corpus is JSON"));
    })
}

fn values(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    by_lines(data, chunk, |line| {
        black_box(serde_json::from_str::<serde_json::Value>(line).expect("the corpus is JSON"));
    })
}

fn rmcp_codec(data: &[u8], chunk: usize, _lines: usize) -> (Duration, usize) {
    let mut codec = JsonRpcMessageCodec::<RxJsonRpcMessage<RoleClient>>::default();
    timed(|| {
        let (mut lines, mut buffer) = (0, BytesMut::new());
        for piece in data.chunks(chunk) {
            buffer.extend_from_slice(piece);
            while let Some(message) = codec.decode(&mut buffer).expect("the corpus is messages") {
                black_box(message);
                lines += 1;
            }
        }
        lines
    })
}

fn compare(section: &str, data: &[u8], chunk: usize, rounds: usize) {
    let lines = memchr::memchr_iter(b'\n', data).count();
    let mut times = vec![Vec::new(); ROWS.len()];
    for _ in 0..rounds {
        for (row, times) in ROWS.iter().zip(&mut times) {
            let (time, found) = (row.run)(data, chunk, lines);
            assert_eq!(found, lines, "{} lost lines", row.name);
            times.push(time.as_secs_f64());
        }
    }
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let floor = times[0].clone();
    println!("\n{section}: {lines} lines, {} bytes, reads of {chunk}; {rounds} rounds", data.len());
    println!("{:38} {:>9} {:>11} {:>9}", "", "best / F", "median / F", "MB/s");
    for (row, times) in ROWS.iter().zip(&times) {
        let mut ratios: Vec<f64> = times.iter().zip(&floor).map(|(time, floor)| time / floor).collect();
        ratios.sort_by(f64::total_cmp);
        let (ratio, median) = (best(times) / best(&floor), ratios[ratios.len() / 2]);
        println!("{:38} {ratio:>9.2} {median:>11.2} {:>9.0}", row.name, data.len() as f64 / best(times) / 1e6);
    }
}

/// Time must grow with the length of a line and no faster.
fn long_lines(rounds: usize) {
    let data = [16, 64].map(long_line);
    let mut best = [f64::INFINITY; 2];
    for _ in 0..rounds {
        for (data, best) in data.iter().zip(&mut best) {
            let (time, lines) = messages(data, CHUNK, 1);
            assert_eq!(lines, 1, "one line");
            *best = best.min(time.as_secs_f64());
        }
    }
    println!("\nlong: a line of 64 MiB takes {:.2} times as long as one of 16 MiB; {rounds} rounds", best[1] / best[0]);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    // Run by `cargo test`, it only shows that it runs.
    let benching = std::env::args().any(|arg| arg == "--bench");
    let rounds = args.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(if benching { 15 } else { 1 });
    let wanted = |section: &str| {
        args.first().map_or(benching || section == "small", |wanted| wanted == section || wanted == "all")
    };
    if wanted("mix") {
        compare("mix", &corpus(1500, &[]), CHUNK, rounds);
    }
    if wanted("small") {
        let lines = if benching { 60_000 } else { 600 };
        compare("small", &corpus(lines, &[Kind::Small, Kind::Small, Kind::Note]), CHUNK, rounds);
    }
    if wanted("list") {
        compare("list", &corpus(1500, &[Kind::List]), CHUNK, rounds);
    }
    if wanted("large") {
        compare("large", &corpus(60, &[Kind::Large]), CHUNK, rounds);
    }
    if wanted("bytewise") {
        let mut data = corpus(1500, &[]);
        data.truncate(1 << 20);
        data.truncate(memchr::memrchr(b'\n', &data).map_or(0, |end| end + 1));
        compare("bytewise", &data, 1, rounds);
    }
    if wanted("long") {
        long_lines(rounds.min(7));
    }
}
