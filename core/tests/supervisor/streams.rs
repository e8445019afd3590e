//! Streams that belong to no process.

use mcp_wire::client;
use mcp_wire::lifecycle::{EndReason, Notice, StartFailure, Step};
use mcp_wire::{Cause, Delivery, Supervisor, SupervisorSignal};

use super::support::{DISCOVERED, GRACE, at, closed, ended, feed, fire, request, signals, steps, written};

#[test]
fn a_stream_without_a_process_closes_with_its_output() {
    // FRM-11
    let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
    assert_eq!(steps(&mut supervisor), []);
    assert!(written(&mut supervisor, 0).contains("server/discover"));
    feed(&mut supervisor, DISCOVERED, 1);
    let handle = request(&mut supervisor, true, 2);
    written(&mut supervisor, 2);
    signals(&mut supervisor);
    supervisor.output_ended(at(3));
    let told = signals(&mut supervisor);
    assert_eq!(ended(&told[0]), Some((handle, Cause::Closed, Delivery::Sent)));
    assert_eq!(closed(&told[1]), Some(EndReason::Crashed));
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    assert_eq!(supervisor.poll_timeout(), None);
}

#[test]
fn the_close_of_a_stream_waits_one_grace_for_the_peer() {
    // FRM-11, SHD-01
    for answers in [false, true] {
        let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
        written(&mut supervisor, 0);
        supervisor.close(at(10));
        assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
        assert_eq!(supervisor.outcome(), None);
        if answers {
            supervisor.output_ended(at(11));
        } else {
            assert_eq!(fire(&mut supervisor), 10 + GRACE);
        }
        let outcome = supervisor.outcome().expect("it is over");
        assert_eq!((outcome.exit, outcome.reason), (None, EndReason::Asked));
    }
}

#[test]
fn a_stream_that_ends_before_it_is_up_is_a_failed_start() {
    // RST-01
    let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
    supervisor.output_ended(at(1));
    let told = signals(&mut supervisor);
    assert_eq!(told[0], SupervisorSignal::Process(Notice::StartFailed(StartFailure::StreamEnded)));
    assert_eq!(closed(&told[1]), Some(EndReason::StartFailed));
}
