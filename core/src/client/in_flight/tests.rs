use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};

use super::*;
use crate::IdBuf;

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A request as a naive map would keep it.
#[derive(Debug, Clone, PartialEq)]
enum At {
    Waiting,
    Queued,
    Lent,
}

#[derive(Debug, Clone)]
struct Plain {
    handle: Handle,
    at: At,
    id: u64,
    token: Option<String>,
    deadline: Option<u64>,
    timeout: u64,
    left: u64,
    since: u64,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(t: u64) -> Instant {
    Instant::from_epoch(ms(t))
}

/// Every question that the table answers has the answer of a walk over the plain list.
fn compare(table: &Table, plain: &BTreeMap<u32, Plain>, seed: u64) {
    assert_eq!(table.live(), plain.len(), "seed {seed}");
    assert_eq!(table.next_deadline(), plain.values().filter_map(|p| p.deadline).min().map(at), "seed {seed}");
    for (&slot, p) in plain {
        assert_eq!(table.slot_of(p.handle), Some(slot), "seed {seed}");
        let id = p.id.to_string();
        let found = table.find(Id::parse(&id).expect("an id"));
        assert_eq!(found, (p.at == At::Lent).then_some(slot), "seed {seed}: {p:?}");
        assert_eq!(table.find_queued(p.id), (p.at == At::Queued).then_some(slot), "seed {seed}: {p:?}");
        if let Some(token) = &p.token {
            let token = Id::parse(token).expect("a token");
            assert!(table.token_in_use(token), "seed {seed}");
            assert_eq!(table.find_token(token), (p.at == At::Lent).then_some(slot), "seed {seed}");
        }
    }
    let order: Vec<u32> = table.live_slots();
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), plain.keys().copied().collect(), "seed {seed}");
    assert_eq!(order.len(), plain.len(), "seed {seed}");
}

// LIM-05, MSG-06, PRG-01: the indexes of the table stay in step with each other, whatever is done to it.
#[test]
fn the_table_agrees_with_a_naive_map() {
    for seed in 1..=20_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut table = Table::default();
        let mut plain: BTreeMap<u32, Plain> = BTreeMap::new();
        let mut ended: Vec<u32> = Vec::new();
        let mut handles = BTreeSet::new();
        let (mut now, mut frame, mut turn, mut last_id) = (0_u64, 0_u64, 0_u64, 0_u64);
        for _ in 0..800 {
            let slot = {
                let nth = usize::try_from(random.below(plain.len().max(1) as u64)).expect("small");
                plain.keys().nth(nth).copied()
            };
            match (random.below(9), slot) {
                (0 | 1, _) if plain.len() < 20 => {
                    let (timeout, left) = (random.below(300), random.below(200));
                    let token = (random.below(3) == 0).then(|| alloc::format!("\"t{}\"", random.below(5)));
                    let own = token.as_deref().and_then(Id::parse).map(IdBuf::from);
                    if own.as_ref().is_some_and(|own| table.token_in_use(own.as_id())) {
                        assert!(plain.values().any(|p| p.token == token), "seed {seed}");
                        continue;
                    }
                    let times = Times { timeout: ms(timeout), queue_timeout: ms(left), max_timeout: None };
                    let own = own.map_or(Token::None, Token::Own);
                    let listen = random.below(5) == 0;
                    let listen =
                        listen.then(|| Box::new(Listen { asked: Filter::default(), granted: None, open: false }));
                    let slot = table.insert(&RequestOptions::default(), times, own, listen, None);
                    turn += 1;
                    table.wait(slot, turn, at(now));
                    let handle = table.handle_of(slot);
                    assert!(handles.insert(handle), "seed {seed}: a handle twice");
                    let p = Plain { handle, at: At::Waiting, id: 0, token, deadline: None, timeout, left, since: 0 };
                    assert!(plain.insert(slot, p).is_none() && !ended.contains(&slot), "seed {seed}: a slot twice");
                }
                (2 | 3, Some(slot)) => {
                    let p = plain.get_mut(&slot).expect("picked");
                    if p.at == At::Waiting {
                        let id = table.next_id(&Token::None);
                        assert!(id > last_id, "seed {seed}");
                        (last_id, frame) = (id, frame + 1);
                        table.queue(slot, id, FrameNumber(frame), at(now));
                        (p.at, p.id, p.since, p.deadline) = (At::Queued, id, now, Some(now + p.left));
                    }
                }
                (4, _) => {
                    table.lent(FrameNumber(frame + 1), at(now));
                    for p in plain.values_mut().filter(|p| p.at == At::Queued) {
                        (p.at, p.deadline) = (At::Lent, Some(now + p.timeout));
                    }
                }
                (5, Some(slot)) => {
                    turn += 1;
                    table.wait(slot, turn, at(now));
                    let p = plain.get_mut(&slot).expect("picked");
                    if p.at == At::Queued {
                        p.left = p.left.saturating_sub(now - p.since);
                    }
                    (p.at, p.id, p.deadline) = (At::Waiting, 0, None);
                }
                (6, Some(slot)) => {
                    let p = plain.remove(&slot).expect("picked");
                    table.end(slot, Ending::Answered);
                    assert_eq!(table.slot_of(p.handle), None, "seed {seed}");
                    ended.push(slot);
                }
                (7, _) => {
                    if let Some(slot) = ended.pop() {
                        table.free(slot);
                        table.free(slot);
                    }
                }
                _ => {
                    now += random.below(60);
                    while let Some(slot) = table.pop_due(at(now)) {
                        let p = plain.get_mut(&slot).expect("seed: one that lives");
                        assert!(p.deadline.is_some_and(|due| due <= now), "seed {seed}");
                        p.deadline = None;
                    }
                    assert!(plain.values().filter_map(|p| p.deadline).all(|due| due > now), "seed {seed}");
                }
            }
            compare(&table, &plain, seed);
            assert_eq!(table.requests() + table.listens(), plain.len() + ended.len(), "seed {seed}");
        }
    }
}

// A slot whose generations are used up is left alone: its handle would name another request.
#[test]
fn a_slot_that_is_worn_out_is_left_alone() {
    let mut table = Table::default();
    let times = Times { timeout: ms(1), queue_timeout: ms(1), max_timeout: None };
    let insert = |table: &mut Table| table.insert(&RequestOptions::default(), times, Token::None, None, None);
    let slot = insert(&mut table);
    table.entry_mut(slot).expect("taken").generation = u32::MAX;
    table.end(slot, Ending::Answered);
    table.free(slot);
    assert_ne!(insert(&mut table), slot);
    assert_eq!(table.requests(), 1);
}
