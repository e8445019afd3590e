//! Owns the record of a history and the count of its faults. Most histories end well and are not recorded: one that breaks an
//! invariant is told again, from its seed. It must not know what is worth recording.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::rc::Rc;

/// Lines kept for a failure; all are printed as they come when one seed is replayed.
const KEPT: usize = 400;

/// How often each kind of fault struck.
pub(crate) type Faults = BTreeMap<&'static str, u64>;

/// What becomes of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// They are not even made.
    Nothing,
    /// The last ones are kept.
    End,
    /// They are printed at once.
    Aloud,
}

#[derive(Debug, Clone)]
pub(crate) struct Trace {
    record: Record,
    lines: Rc<RefCell<VecDeque<String>>>,
    faults: Rc<RefCell<Faults>>,
    now_us: Rc<Cell<u64>>,
}

impl Trace {
    pub(crate) fn new(record: Record) -> Self {
        Self { record, lines: Rc::default(), faults: Rc::default(), now_us: Rc::default() }
    }

    pub(crate) fn set_now(&self, now_us: u64) {
        self.now_us.set(now_us);
    }

    pub(crate) fn say(&self, who: &str, what: impl Display) {
        if self.record == Record::Nothing {
            return;
        }
        let line = format!("{:>12.6} s  {who:<7} {what}", self.now_us.get() as f64 / 1e6);
        if self.record == Record::Aloud {
            println!("{line}");
            return;
        }
        let mut lines = self.lines.borrow_mut();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Something happens that should not happen in a good world.
    pub(crate) fn fault(&self, kind: &'static str) {
        *self.faults.borrow_mut().entry(kind).or_default() += 1;
    }

    pub(crate) fn take_faults(&self) -> Faults {
        self.faults.take()
    }

    pub(crate) fn print(&self) {
        for line in self.lines.borrow().iter() {
            println!("{line}");
        }
    }
}
