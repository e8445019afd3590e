use alloc::vec;
use alloc::vec::Vec;

use super::*;

fn push(buffer: &mut SendBuffer, frame: &[u8]) -> FrameNumber {
    buffer.push(false, |out| out.extend_from_slice(frame)).expect("there is room")
}

// FRM-01, FRM-10: frames leave whole, in order, each with one LF, whatever the writer takes at a time.
#[test]
fn frames_leave_whole_and_in_order() {
    let mut buffer = SendBuffer::new(1000);
    push(&mut buffer, b"{\"a\":1}");
    push(&mut buffer, b"{\"b\":\n2}");
    let mut wire = Vec::new();
    while let Some(&byte) = buffer.output().first() {
        wire.push(byte);
        buffer.accepted(1);
    }
    assert_eq!(wire, b"{\"a\":1}\n{\"b\":2}\n");
    assert_eq!(buffer.len(), 0);
}

// CAN-03: no byte of a withdrawn frame leaves; once a byte of its segment is lent it is too late.
#[test]
fn only_what_was_never_lent_can_be_withdrawn() {
    let mut buffer = SendBuffer::new(1000);
    let (a, b, c) = (push(&mut buffer, b"a"), push(&mut buffer, b"b"), push(&mut buffer, b"c"));
    assert!(buffer.withdraw(b));
    assert!(!buffer.withdraw(b));
    assert_eq!(buffer.len(), 4);
    assert_eq!(buffer.output(), b"a\nc\n");
    assert!(!buffer.withdraw(a) && !buffer.withdraw(c));
    let d = push(&mut buffer, b"d");
    assert_eq!(buffer.output(), b"a\nc\n", "a lent segment is frozen");
    assert!(buffer.withdraw(d));
    buffer.accepted(4);
    assert_eq!(buffer.output(), b"");
}

#[test]
fn progress_tells_what_the_writer_has() {
    let mut buffer = SendBuffer::new(1000);
    let (a, b) = (push(&mut buffer, b"aa"), push(&mut buffer, b"bb"));
    assert_eq!(buffer.progress(a), Progress::Queued);
    assert_eq!(buffer.lent_up_to(), a);
    let _ = buffer.output();
    assert!(buffer.lent_up_to() > b);
    assert_eq!((buffer.progress(a), buffer.progress(b)), (Progress::Lent, Progress::Lent));
    buffer.accepted(2);
    assert_eq!((buffer.progress(a), buffer.progress(b)), (Progress::Partly, Progress::Lent));
    buffer.accepted(1);
    assert_eq!((buffer.progress(a), buffer.progress(b)), (Progress::Accepted, Progress::Lent));
    buffer.accepted(usize::MAX);
    assert_eq!(buffer.progress(b), Progress::Accepted);
    buffer.accepted(5);
    assert_eq!(buffer.len(), 0);
}

// LIM-04: the queue is bounded in bytes; a refused frame leaves nothing behind; cancellations have room beyond.
#[test]
fn the_limit_holds_and_a_refused_frame_leaves_nothing() {
    let mut buffer = SendBuffer::new(10);
    push(&mut buffer, b"12345");
    assert_eq!(buffer.push(false, |out| out.extend_from_slice(b"6789")), Err(SendError::Full));
    let giant = vec![b'x'; 1 << 20];
    assert_eq!(
        buffer.push(false, |out| out.extend_from_slice(&giant)),
        Err(SendError::TooLarge { size: giant.len() + 1, limit: 10 })
    );
    buffer.push(true, |out| out.extend_from_slice(b"cancellation")).expect("reserved room");
    assert_eq!(buffer.output(), b"12345\ncancellation\n");
    assert_eq!(buffer.len(), 19);
    let mut empty = SendBuffer::new(3);
    assert_eq!(empty.push(false, |out| out.extend_from_slice(b"123")), Err(SendError::TooLarge { size: 4, limit: 3 }));
    assert_eq!(empty.output(), b"");
    push(&mut empty, b"12");
    assert_eq!(empty.output(), b"12\n");
}

#[test]
fn a_vector_can_be_lent_by_ownership() {
    let mut buffer = SendBuffer::new(1000);
    push(&mut buffer, b"aa");
    let _ = buffer.output();
    buffer.accepted(1);
    let out = buffer.take().expect("bytes are there");
    assert_eq!(out, b"a\n");
    push(&mut buffer, b"b");
    assert!(buffer.take().is_none() && buffer.output().is_empty(), "one is out");
    buffer.accepted(2);
    buffer.recycle(out);
    assert_eq!(buffer.take().expect("the next"), b"b\n");
}

// LIM-04: what a giant frame took is given back.
#[test]
fn the_memory_of_a_giant_frame_is_given_back() {
    let mut buffer = SendBuffer::new(16 << 20);
    push(&mut buffer, &vec![b'x'; 4 << 20]);
    let spent = buffer.take().expect("bytes are there");
    buffer.accepted(spent.len());
    buffer.recycle(spent);
    assert!(buffer.spare_bytes.capacity() <= KEPT_CAPACITY);
    push(&mut buffer, &vec![b'x'; 4 << 20]);
    let n = buffer.output().len();
    buffer.accepted(n);
    assert!(buffer.spare_bytes.capacity() <= KEPT_CAPACITY);
}

// LIM-05: frames pushed and withdrawn while the writer stands still leave no memory behind.
#[test]
fn withdrawn_frames_leave_no_memory_behind() {
    let mut buffer = SendBuffer::new(1 << 20);
    push(&mut buffer, b"stuck");
    let _ = buffer.output();
    let mut kept = 0;
    for round in 0..20_000 {
        let frames = [push(&mut buffer, &[b'y'; 90]), push(&mut buffer, &[b'z'; 90])];
        assert!(buffer.withdraw(frames[0]));
        // A few stay for ever, so that no segment is ever empty.
        if round % 100 == 0 {
            kept += 1;
        } else {
            assert!(buffer.withdraw(frames[1]));
        }
    }
    let bytes: usize = buffer.segments.iter().map(|s| s.bytes.len()).sum();
    let spans: usize = buffer.segments.iter().map(|s| s.spans.len()).sum();
    assert_eq!(buffer.len(), 6 + kept * 91);
    assert!(bytes <= 2 * buffer.len() + 200 && spans <= 2 * kept + 4, "{bytes} bytes, {spans} spans");
}

// LIM-04: what waits elsewhere for its turn counts against the same limit.
#[test]
fn held_bytes_count_against_the_limit() {
    let mut buffer = SendBuffer::new(10);
    assert_eq!(buffer.hold(11), Err(SendError::TooLarge { size: 11, limit: 10 }));
    buffer.hold(7).expect("there is room");
    assert_eq!(buffer.hold(4), Err(SendError::Full));
    assert_eq!(buffer.push(false, |out| out.extend_from_slice(b"123")), Err(SendError::Full));
    push(&mut buffer, b"12");
    assert_eq!(buffer.room(), 0);
    buffer.unhold(7);
    assert_eq!(buffer.room(), 7);
}

#[test]
fn frames_that_were_not_lent_can_be_taken_out() {
    let mut buffer = SendBuffer::new(100);
    push(&mut buffer, b"a");
    let _ = buffer.output();
    let (b, c) = (push(&mut buffer, b"b"), push(&mut buffer, b"c"));
    assert!(buffer.withdraw(b));
    assert_eq!(buffer.drain_unlent(), vec![(c, b"c\n".to_vec())]);
    assert_eq!(buffer.output(), b"a\n");
    buffer.accepted(2);
    assert_eq!((buffer.len(), buffer.output().len()), (0, 0));
}

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("below a usize")
    }
}

/// The model: one plain list of frames.
#[derive(Default)]
struct Model {
    frames: Vec<(FrameNumber, Vec<u8>, bool)>,
    wire: Vec<u8>,
}

// FRM-10, CAN-03: whatever is pushed, withdrawn, lent and accepted in which order, the wire is the list of what was not withdrawn.
#[test]
fn random_operations_agree_with_a_plain_list() {
    for seed in 1..=24_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let limit = 300_000;
        let mut buffer = SendBuffer::new(limit);
        let mut model = Model::default();
        let mut wire = Vec::new();
        let mut taken: Option<Vec<u8>> = None;
        let mut lent_frames = 0;
        for _ in 0..1500 {
            match random.below(10) {
                0..=3 => {
                    let size = if random.below(40) == 0 { random.below(90_000) } else { random.below(200) } + 1;
                    let byte = b'a' + u8::try_from(random.below(26)).expect("a letter");
                    let frame = vec![byte; size];
                    match buffer.push(false, |out| out.extend_from_slice(&frame)) {
                        Ok(number) => {
                            let mut line = frame;
                            line.push(b'\n');
                            model.frames.push((number, line, false));
                        }
                        Err(error) => {
                            assert_eq!(error, SendError::Full);
                            assert!(buffer.len() + size >= limit);
                        }
                    }
                }
                4..=5 if !model.frames.is_empty() => {
                    let back = random.below(30).min(model.frames.len() - 1);
                    let at = model.frames.len() - 1 - back;
                    let (number, _, withdrawn) = &mut model.frames[at];
                    let possible = !*withdrawn && *number >= buffer.lent_up_to();
                    assert_eq!(buffer.withdraw(*number), possible, "seed {seed}");
                    *withdrawn |= possible;
                }
                6 if taken.is_none() => {
                    taken = buffer.take();
                }
                7..=8 => match &taken {
                    Some(bytes) => {
                        let n = random.below(bytes.len() + 1);
                        let rest = bytes[n..].to_vec();
                        wire.extend_from_slice(&bytes[..n]);
                        buffer.accepted(n);
                        if rest.is_empty() {
                            buffer.recycle(taken.take().expect("it is out"));
                        } else {
                            taken = Some(rest);
                        }
                    }
                    None => {
                        let out = buffer.output();
                        let n = random.below(out.len() + 1);
                        wire.extend_from_slice(&out[..n]);
                        buffer.accepted(n);
                    }
                },
                _ => {}
            }
            // Lent frames count from the front, and no withdrawn frame is among what was lent.
            while model.frames.get(lent_frames).is_some_and(|f| f.0 < buffer.lent_up_to()) {
                let (_, line, withdrawn) = &model.frames[lent_frames];
                if !withdrawn {
                    model.wire.extend_from_slice(line);
                }
                lent_frames += 1;
            }
            assert!(model.wire.starts_with(&wire), "seed {seed}");
            let live: usize = model.frames.iter().filter(|f| !f.2).map(|f| f.1.len()).sum();
            assert_eq!(buffer.len(), live - wire.len(), "seed {seed}");
            // The progress of a frame is where the wire stands in it.
            if let Some((number, ..)) = model.frames.last() {
                let at = model.frames.len() - 1 - random.below(20).min(model.frames.len() - 1);
                let (frame, line, withdrawn) = &model.frames[at];
                let start: usize = model.frames[..at].iter().filter(|f| !f.2).map(|f| f.1.len()).sum();
                let expected = if *withdrawn || wire.len() >= start + line.len() {
                    Progress::Accepted
                } else if wire.len() > start {
                    Progress::Partly
                } else if *frame < buffer.lent_up_to() {
                    Progress::Lent
                } else {
                    Progress::Queued
                };
                assert_eq!(buffer.progress(*frame), expected, "seed {seed}, frame {at} of {number:?}");
            }
        }
    }
}
