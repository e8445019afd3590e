//! Closing: what is still written, and for how long.

use mcp_wire::lifecycle::{EndReason, Escalation, ExitStatus, Step};
use mcp_wire::{Cause, Delivery};

use super::support::{GRACE, at, ended, fire, request, signals, steps, up, written};

#[test]
fn stdin_is_closed_when_the_half_line_is_finished() {
    // SHD-01, SHD-03: what was begun is finished, what was not is withdrawn
    let mut supervisor = up(|_, _| {});
    let begun = request(&mut supervisor, false, 1);
    let lent = supervisor.output(at(1)).len();
    supervisor.accepted(10, at(1));
    let waiting = request(&mut supervisor, false, 1);
    supervisor.close(at(2));
    let told = signals(&mut supervisor);
    let find =
        |handle| told.iter().filter_map(ended).find(|(ended, ..)| *ended == handle).map(|(.., delivery)| delivery);
    assert_eq!(find(begun), Some(Delivery::PartlySent));
    assert_eq!(find(waiting), Some(Delivery::NotSent));
    assert_eq!(steps(&mut supervisor), []);
    let rest = supervisor.output(at(2)).to_vec();
    assert_eq!(rest.len(), lent - 10);
    assert!(rest.ends_with(b"\n"));
    supervisor.accepted(rest.len(), at(3));
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    assert!(supervisor.output(at(3)).is_empty());
}

#[test]
fn a_server_that_does_not_read_delays_the_close_of_its_stdin_by_one_grace() {
    // SHD-01, case 105: a full pipe to a deaf server
    let mut supervisor = up(|_, _| {});
    request(&mut supervisor, false, 1);
    let _ = supervisor.output(at(1));
    supervisor.accepted(1, at(1));
    supervisor.close(at(2));
    assert_eq!(steps(&mut supervisor), []);
    assert_eq!(fire(&mut supervisor), 2 + GRACE);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin, Step::Terminate]);
    assert!(supervisor.output(at(3 + GRACE)).is_empty());
}

#[test]
fn kill_writes_nothing_more() {
    // SHD-03, SHD-04
    let mut supervisor = up(|_, _| {});
    let handle = request(&mut supervisor, false, 1);
    let _ = supervisor.output(at(1));
    supervisor.accepted(1, at(1));
    supervisor.kill(at(2));
    assert!(supervisor.output(at(2)).is_empty());
    assert!(supervisor.take_output(at(2)).is_none());
    assert_eq!(steps(&mut supervisor), [Step::Kill]);
    assert_eq!(ended(&signals(&mut supervisor)[0]), Some((handle, Cause::Closed, Delivery::PartlySent)));
    supervisor.exited(ExitStatus::Signal(9), at(3));
    assert_eq!(steps(&mut supervisor), [Step::KillGroup, Step::Reap]);
    supervisor.reaped(at(3));
    let outcome = supervisor.outcome().expect("it is over");
    assert_eq!((outcome.escalation, outcome.reason), (Escalation::Kill, EndReason::Asked));
}

#[test]
fn an_overflow_ends_its_request_and_cancels_it_on_the_wire() {
    // RTE-12
    let mut supervisor = up(|_, _| {});
    let handle = request(&mut supervisor, false, 1);
    written(&mut supervisor, 1);
    supervisor.overflow(handle, at(2));
    assert_eq!(signals(&mut supervisor).iter().find_map(ended), Some((handle, Cause::Overflow, Delivery::Sent)));
    assert!(written(&mut supervisor, 2).contains("notifications/cancelled"));
}
