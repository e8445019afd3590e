//! Owns the targets for lines: where they end, against `split`, and what they mean, against a plain model on `serde_json`.

use crate::chunks::{Owned, feed};
use crate::envelope_model;

/// Frames against `split(b'\n')`. The input is a line limit (two bytes), a number of cuts (one byte, at most 7), where they are
/// (two bytes each), and what comes over the stream.
pub fn frames(data: &[u8]) {
    let Some((header, rest)) = data.split_first_chunk::<3>() else { return };
    let limit = usize::from(u16::from_le_bytes([header[0], header[1]])).max(1);
    let cuts = usize::from(header[2] & 7) * 2;
    let Some((cuts, stream)) = rest.split_at_checked(cuts) else { return };
    let mut cuts: Vec<usize> =
        cuts.chunks(2).map(|cut| usize::from(u16::from_le_bytes([cut[0], cut[1]])) % (stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();

    let got = feed(limit, cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]), true);
    assert_eq!(got, feed(limit, [stream], true), "the cuts {cuts:?} make a difference");
    if stream.len() < 512 {
        assert_eq!(got, feed(limit, stream.chunks(1), true), "single bytes make a difference");
    }
    let got: Vec<_> = got.iter().map(|frame| (&frame.bytes[..], too_long(frame))).collect();
    assert_eq!(got, split(limit, stream), "limit {limit}");
}

fn too_long(frame: &Owned) -> bool {
    frame.message.starts_with("unreadable line_too_long ")
}

/// The lines of a stream, the naive way: each with whether it is over the limit, which leaves nothing of it.
fn split(limit: usize, stream: &[u8]) -> Vec<(&[u8], bool)> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let last = lines.pop();
    let closed = lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    closed
        .chain(last)
        .filter(|line| line.len() > limit || !line.iter().all(|byte| b" \t\r".contains(byte)))
        .map(|line| if line.len() > limit { (&[][..], true) } else { (line, false) })
        .collect()
}

/// The meaning of a line against a plain model on `serde_json`.
pub fn envelope(data: &[u8]) {
    if data.contains(&b'\n') || data.starts_with(b"\xef\xbb\xbf") {
        return;
    }
    let Some(want) = envelope_model::model(data) else { return };
    match &feed(1 << 20, [data, b"\n"], true)[..] {
        [got] => assert!(envelope_model::agrees(&got.message, &want), "got {}\nwant {want}", got.message),
        [] => assert!(data.iter().all(|byte| b" \t\r".contains(byte)), "a line that is not blank gave nothing"),
        more => panic!("one line gave {more:?}"),
    }
}
