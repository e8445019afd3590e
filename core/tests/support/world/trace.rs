//! Owns the record of a history, printed when it breaks an invariant. It must not know what is worth recording.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Display;
use std::rc::Rc;

/// Lines kept for a failure; all are printed as they come when one seed is replayed.
const KEPT: usize = 400;

#[derive(Debug, Clone)]
pub(crate) struct Trace {
    lines: Rc<RefCell<VecDeque<String>>>,
    aloud: bool,
    now_us: Rc<Cell<u64>>,
}

impl Trace {
    pub(crate) fn new(aloud: bool) -> Self {
        Self { lines: Rc::default(), aloud, now_us: Rc::default() }
    }

    pub(crate) fn set_now(&self, now_us: u64) {
        self.now_us.set(now_us);
    }

    pub(crate) fn say(&self, who: &str, what: impl Display) {
        let line = format!("{:>12.6} s  {who:<7} {what}", self.now_us.get() as f64 / 1e6);
        if self.aloud {
            println!("{line}");
        }
        let mut lines = self.lines.borrow_mut();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(crate) fn print(&self) {
        if !self.aloud {
            for line in self.lines.borrow().iter() {
                println!("{line}");
            }
        }
    }
}
