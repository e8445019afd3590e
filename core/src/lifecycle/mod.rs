//! The life of a server's process as a machine of its own: start, shutdown ladder, restarts with delay and budget, idle stop.
//! It must not know JSON, connections, process ids or clocks.
//!
//! [`Process`] is told what happened and says what to do. Exit and end of output are two facts and two inputs: a process
//! may end its output and live on, and a grandchild may hold the output open after the exit.
//!
//! # States
//!
//! | state | a life? | left by |
//! |---|---|---|
//! | `Stopped` | no: lazy and not woken yet, or stopped because idle | work, close |
//! | `Spawning` | its `Spawn` is given | the answer to it |
//! | `Running` | yes | the end of its output or input, its exit, close, idle time |
//! | `Closing` | yes, on the ladder: stdin closed, terminated, killed | its exit; each rung's grace |
//! | `Draining` | exited, not reaped: the rest of its group ends, its output is read to the end | both pipes ended, silence, one grace |
//! | `Reaping` | its `Reap` is given | the answer to it |
//! | `Waiting` | no: the delay of a restart | the delay, `retry_now`, close |
//! | `Closed` | no, and never again | nothing |
//!
//! # What each input does in each state
//!
//! `·` changes nothing. *ladder* gives `CloseStdin` and goes to `Closing`; *for good* goes to `Closed` with its notice;
//! *mark* is remembered for the end of this life. `end` is the end of a life, below.
//!
//! | | wake | spawned | spawn_failed | established | failed | output_ended | input_failed | exited | group_signalled | reaped | close | kill | time |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | `Stopped` | `Spawn` → `Spawning` | · | · | · | for good | · | · | · | · | · | for good | for good | · |
//! | `Spawning` | · | `Running` (ladder if closing, `Kill` if killed) | for good, or `Waiting` if it once was up | · | for good; mark if `Spawn` is taken | · | · | · | · | · | for good; mark if `Spawn` is taken | as close | · |
//! | `Running` | · | · | · | mark | ladder | ladder | ladder | `TerminateGroup` → `Draining` | · | · | ladder | `Kill` → `Closing` | idle long enough: ladder |
//! | `Closing` | mark if idle | · | · | mark | mark | mark | · | `TerminateGroup` → `Draining` | · | · | mark | `Kill` | grace over: `Terminate`, then `Kill`, then `GiveUp` and for good |
//! | `Draining` | mark if idle | · | · | mark | mark | `Reap` if all ended | · | · | `Reap` if all ended | · | mark | `KillGroup`, `Reap` → `Reaping` | silence or grace over: `KillGroup`, `Reap` → `Reaping` |
//! | `Reaping` | mark if idle | · | · | · | mark | · | · | · | · | end | mark | mark | · |
//! | `Waiting` | · | · | · | · | for good | · | · | · | · | · | for good | for good | delay over: `Spawn` → `Spawning` |
//! | `Closed` | · | · | · | · | · | · | · | · | · | · | · | · | · |
//!
//! `output_seen` pushes the silence of `Draining` on; `stderr_ended` counts there with `output_ended` for "all ended";
//! `retry_now` ends `Waiting`, or marks that there will be none; `idle` starts the idle time of `Running`, `busy` stops it.
//!
//! # The end of a life
//!
//! | the first that holds | then |
//! |---|---|
//! | close or kill was called | for good, asked: an exit while closing is no crash |
//! | the connection has failed | for good, start failed |
//! | it was stopped because idle | `Stopped`; `Spawn` → `Spawning` if it was woken meanwhile |
//! | the connection was never established, in no life, and the first life ended on the probe | `Spawn` → `Spawning`, once (VER-05) |
//! | the connection was never established, in no life | `StartFailed`, for good |
//! | the budget of restarts is not used up | `Waiting` |
//! | otherwise | for good, crashed |

mod config;
mod process;
mod words;

pub use config::Config;
pub use process::Process;
pub use words::{EndReason, Escalation, ExitStatus, Notice, Outcome, SpawnFailure, StartFailure, Step};
