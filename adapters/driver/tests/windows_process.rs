//! The process tree on Windows: exit, the job and what it ends, pipes, surroundings.

#![cfg(windows)]

mod windows_support;

use std::task::{Context, Waker};

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{Spawned, Stderr, spawn};
use mcp_wire_driver::stdio::{ReadPump, WritePump};
use windows_support::{
    TempDir, block, exit_of, helper_ends, helper_lives, job_empties, misbehaving, output_of, read_line, read_to_end,
    start,
};

/// A child that has started a helper which keeps no stream open, and the helper's file. `then` follows.
fn with_helper(then: &str, own_group: bool) -> (Spawned, String, TempDir) {
    let dir = TempDir::new();
    let file = dir.file("helper");
    let command = misbehaving(&[&format!("helper:{file}:-"), "say:ready", then]).process_group(own_group);
    let mut server = spawn(&command).expect("it can be spawned");
    let mut ready = [0; 6];
    std::io::Read::read_exact(&mut server.stdout, &mut ready).expect("it says that it is ready");
    assert!(helper_lives(&file));
    (server, file, dir)
}

// RST-05: the notice comes with the exit, not before, and the status can be read then
#[test]
fn the_exit_notice_comes_with_the_exit() {
    let server = start(&["drain", "exit:7"]);
    let notice = server.child.exit_notice().expect("a notice");
    assert!(notice.poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it waits for the end of its input");
    assert_eq!((server.child.try_exit(), server.child.reap()), (None, None));
    drop(server.stdin);
    block("the notice comes", |cx| notice.poll(cx));
    assert_eq!(server.child.try_exit(), Some(ExitStatus::Code(7)));
    assert_eq!(server.child.reap(), Some(ExitStatus::Code(7)));
}

// PRC-06: two children at a time: closing the input of one gives the end to that one only
#[test]
fn siblings_share_no_pipe() {
    let (first, second) = (start(&["drain"]), start(&["drain"]));
    drop(first.stdin);
    assert_eq!(exit_of(&first.child), ExitStatus::Code(0));
    assert_eq!(second.child.try_exit(), None);
    drop(second.stdin);
    assert_eq!(exit_of(&second.child), ExitStatus::Code(0));
}

// PRC-02, case 137: only the direct child is stopped; the real server is a grandchild: it is in the job, as the child was before its first
// instruction, however early it was started
#[test]
fn a_grandchild_is_gone_after_a_kill() {
    for _ in 0..5 {
        let (server, helper, _dir) = with_helper("sleep", true);
        server.child.kill();
        exit_of(&server.child);
        helper_ends(&helper);
    }
}

// case 144: tree kill by parent ids hits the host: a job is ended, in which this process is not
#[test]
fn a_kill_ends_the_own_tree_only() {
    let (first, first_helper, _first) = with_helper("sleep", true);
    let (second, second_helper, _second) = with_helper("sleep", true);
    first.child.kill();
    exit_of(&first.child);
    helper_ends(&first_helper);
    assert!(second.child.try_exit().is_none() && helper_lives(&second_helper));
}

// SHD-04: a drop ends the tree, without a runtime
#[test]
fn a_drop_ends_the_tree() {
    let (server, helper, _dir) = with_helper("sleep", true);
    drop(server);
    helper_ends(&helper);
}

// PRC-03: the child exits by itself: what it leaves behind is seen and is not asked to end, and it is ended when that is due
#[test]
fn what_an_exited_child_leaves_behind_is_ended() {
    let (server, helper, _dir) = with_helper("exit:3", true);
    assert_eq!(exit_of(&server.child), ExitStatus::Code(3));
    assert!(!server.child.terminate_group(), "somebody is left");
    assert!(helper_lives(&helper), "nobody can ask it to end");
    assert!(!server.child.kill_group());
    helper_ends(&helper);
    job_empties(&server.child);
    assert_eq!(server.child.reap(), Some(ExitStatus::Code(3)));
}

// PRC-03: the reap ends what is left, for afterwards nothing could
#[test]
fn the_reap_ends_what_is_left() {
    let (server, helper, _dir) = with_helper("exit:0", true);
    exit_of(&server.child);
    assert_eq!(server.child.reap(), Some(ExitStatus::Code(0)));
    helper_ends(&helper);
    assert!(server.child.terminate_group() && server.child.kill_group());
}

// PRC-03: nobody left is nobody to end
#[test]
fn an_empty_job_is_seen_as_empty() {
    let server = start(&["exit:0"]);
    exit_of(&server.child);
    job_empties(&server.child);
    assert!(server.child.kill_group());
    assert_eq!(server.child.reap(), Some(ExitStatus::Code(0)));
}

// case 186: kill-on-close ends wanted background children after a normal exit: the group option is the switch
#[test]
fn without_a_group_only_the_child_is_ended() {
    for kill in [true, false] {
        let (server, helper, _dir) = with_helper("sleep", false);
        assert!(server.child.terminate_group() && server.child.kill_group(), "there is no job to end");
        if kill {
            server.child.kill();
            exit_of(&server.child);
            assert!(server.child.reap().is_some());
        } else {
            let notice = server.child.exit_notice().expect("a notice");
            drop(server);
            block("the drop ends it", |cx| notice.poll(cx));
        }
        assert!(helper_lives(&helper), "what it left behind stays");
    }
}

// PRC-04: calls of any kind may follow any other, and nothing but the first takes effect
#[test]
fn ends_and_reaps_can_be_repeated() {
    let server = start(&["sleep"]);
    let child = &server.child;
    assert!(child.terminate_group() && child.kill_group(), "before its exit that is nobody's turn");
    assert_eq!((child.try_exit(), child.reap()), (None, None), "so it lives");
    for _ in 0..3 {
        child.terminate();
        child.kill();
    }
    let status = exit_of(child);
    for _ in 0..3 {
        assert_eq!(child.reap(), Some(status));
        child.kill();
        child.terminate();
        assert!(child.terminate_group() && child.kill_group());
        assert_eq!(child.try_exit(), Some(status));
        assert!(child.exit_notice().is_err());
    }
}

// case 184: creation flags get lost when a job object is used: no window, in the job, and running, all at once; case 187: console window flashes
#[test]
fn a_child_has_no_window_and_is_in_a_job() {
    assert_eq!(output_of(start(&["surroundings"])), "window false, job true\n");
}

// case 187: without a job there is no window either
#[test]
fn a_child_without_a_group_has_no_window() {
    let command = misbehaving(&["surroundings"]).process_group(false);
    let told = output_of(spawn(&command).expect("it can be spawned"));
    assert!(told.starts_with("window false"), "{told}");
}

// case 190: pipe read gives zero bytes without being at the end: somebody has written nothing, and more comes
#[test]
fn a_write_of_nothing_is_not_the_end() {
    assert_eq!(output_of(start(&["say:one", "empty", "empty", "say:two", "empty", "exit:0"])), "one\ntwo\n");
}

// FRM-10: whatever is taken over for the input arrives whole and in order, also when the pump is dropped unflushed
#[test]
fn an_unflushed_drop_loses_no_byte() {
    let Spawned { child: _child, stdin, stdout, .. } = start(&["count"]);
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let sum = sent.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let mut input = WritePump::of_pipe(stdin).expect("a thread");
    let mut rest = &sent[..];
    while !rest.is_empty() {
        let n = block("it reads", |cx| input.poll_write(cx, rest)).expect("it can be written");
        rest = &rest[n..];
    }
    drop(input);
    let mut output = ReadPump::of_pipe(stdout).expect("a thread");
    assert_eq!(read_line(&mut output), format!("{} {sum}", sent.len()));
}

// SHD-07: a child that reads no more is an error of the writes, not a hang
#[test]
fn writing_to_an_exited_child_fails() {
    let server = start(&["exit:0"]);
    exit_of(&server.child);
    // The console host may hold a copy of the other end until then.
    job_empties(&server.child);
    let mut input = WritePump::of_pipe(server.stdin).expect("a thread");
    let _ = block("it is taken over", |cx| input.poll_write(cx, b"x"));
    let error = block("it fails", |cx| input.poll_flush(cx)).expect_err("nobody reads");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

// LOG-05: standard error is piped where it is wanted, whatever its volume, and not otherwise
#[test]
fn standard_error_goes_where_it_is_wanted() {
    for (policy, piped) in [(Stderr::Lines, true), (Stderr::Tee, true), (Stderr::Null, false), (Stderr::Inherit, false)]
    {
        let steps: &[&str] = if piped { &["flood:stderr:200000"] } else { &["exit:0"] };
        let server = spawn(&misbehaving(steps).stderr(policy)).expect("it can be spawned");
        assert_eq!(server.stderr.is_some(), piped, "{policy:?}");
        if let Some(stderr) = server.stderr {
            let text = read_to_end(&mut ReadPump::of_pipe(stderr).expect("a thread"));
            assert_eq!(text.len(), 200_000);
        }
        assert_eq!(exit_of(&server.child), ExitStatus::Code(0));
    }
}
