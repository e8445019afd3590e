//! Owns the question whether anybody is left in the group of an exited leader. It must not know what follows from the answer.

use rustix::process::Pid;

/// Whether nobody but the exited leader is in its group. A signal cannot tell: the unreaped leader still receives it. So the processes are
/// gone through, which is done only once a leader has exited and costs some microseconds for each process of the machine.
///
/// A member that is born and whose parent ends while this looks can be missed; the reap therefore kills the group once more.
#[cfg(target_os = "linux")]
pub(super) fn is_empty(leader: Pid) -> bool {
    use std::io::Read;

    let leader = leader.as_raw_nonzero().get();
    // Unknown counts as inhabited: that costs a grace period, the other mistake costs a survivor its chance to end cleanly.
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mut stat = Vec::with_capacity(512);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if pid == leader {
            continue;
        }
        stat.clear();
        let Ok(mut file) = std::fs::File::open(entry.path().join("stat")) else { continue };
        if file.read_to_end(&mut stat).is_ok() && Stat::parse(&stat).is_some_and(|stat| stat.lives_in(leader)) {
            return false;
        }
    }
    true
}

/// There is no cheap look elsewhere: it counts as inhabited.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_empty(_: Pid) -> bool {
    false
}

/// What is needed of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    group: i32,
    threads: u32,
}

#[cfg(target_os = "linux")]
impl Stat {
    /// `pid (name) state ppid pgrp ...`; the name may hold anything, so the fields count from its last closing parenthesis.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let text = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let group = fields.nth(1)?.parse().ok()?;
        // The 20th field of all, the 18th from the state on.
        let threads = fields.nth(14)?.parse().ok()?;
        Some(Self { state, group, threads })
    }

    /// A process whose main thread has ended looks like a zombie while its other threads run on.
    const fn lives_in(&self, group: i32) -> bool {
        self.group == group && (self.threads > 1 || !matches!(self.state, b'Z' | b'X' | b'x'))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    // PRC-03: what counts as a survivor of the group
    #[test]
    fn names_cannot_confuse_and_zombies_do_not_count() {
        let line = |name: &str, state: char, threads: u32| {
            format!("17 ({name}) {state} 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0\n").into_bytes()
        };
        let stat = Stat::parse(&line("a) R 1 7 (b", 'S', 1)).expect("a whole line");
        assert_eq!(stat, Stat { state: b'S', group: 42, threads: 1 });
        assert!(stat.lives_in(42) && !stat.lives_in(7));
        assert!(!Stat::parse(&line("x", 'Z', 1)).expect("a whole line").lives_in(42));
        assert!(Stat::parse(&line("x", 'Z', 2)).expect("a whole line").lives_in(42), "its other threads run on");
        assert!(Stat::parse(&line("x", 'T', 1)).expect("a whole line").lives_in(42), "a stopped one lives");
        assert_eq!(Stat::parse(b"17 (cut"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn the_own_line_is_understood() {
        let stat = Stat::parse(&std::fs::read("/proc/self/stat").expect("there is one")).expect("it is understood");
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert!(stat.group == group && stat.threads >= 1 && stat.lives_in(group), "{stat:?}");
    }
}
