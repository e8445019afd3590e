//! One server on stdio: lines in, lines out, and how it ended. It must not know of HTTP, nor of eras.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};

/// A server whose input has ended must end by itself, and in less than this.
const PATIENCE: Duration = Duration::from_secs(5);

/// The writing end of a child. When the last copy is dropped, the child's input ends.
#[derive(Clone)]
pub(crate) struct Input(mpsc::UnboundedSender<Value>);

impl Input {
    pub(crate) fn write(&self, message: Value) {
        // A child that is gone answers nothing, and whoever waits for it is told so.
        let _ = self.0.send(message);
    }
}

/// How the children end.
#[derive(Default)]
pub(crate) struct Ends {
    started: AtomicUsize,
    ended: watch::Sender<usize>,
    badly: AtomicUsize,
}

impl Ends {
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// When all have ended: whether each did so by itself, with exit status 0.
    pub(crate) async fn all_ended_well(&self) -> bool {
        let mut ended = self.ended.subscribe();
        let all = ended.wait_for(|ended| *ended == self.started()).await.is_ok();
        let badly = self.badly.load(Ordering::Relaxed);
        eprintln!("bridge: {} servers were started, {badly} did not end well", self.started());
        all && badly == 0
    }
}

/// Starts a server; every message that it writes goes to `told`, and `None` at the end of its output.
pub(crate) fn start(
    command: &[String],
    ends: &Arc<Ends>,
    mut told: impl FnMut(Option<Value>) + Send + 'static,
) -> std::io::Result<Input> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    let (sender, mut messages) = mpsc::unbounded_channel::<Value>();
    ends.started.fetch_add(1, Ordering::Relaxed);
    let ends = ends.clone();
    tokio::spawn(async move {
        let write = async move {
            while let Some(message) = messages.recv().await {
                if input.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        };
        let read = async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(text)) = lines.next_line().await {
                match serde_json::from_str(&text) {
                    Ok(message) => told(Some(message)),
                    Err(error) => eprintln!("bridge: the server wrote no JSON ({error}): {text}"),
                }
            }
            told(None);
        };
        let mut reading = tokio::spawn(read);
        // Nothing can be said any more to one that has ended its output.
        let read_to_end = tokio::select! {
            () = write => false,
            _ = &mut reading => true,
        };
        let well = match tokio::time::timeout(PATIENCE, child.wait()).await {
            Ok(Ok(status)) if status.success() => true,
            Ok(status) => {
                eprintln!("bridge: a server ended with {status:?}");
                false
            }
            Err(_) => {
                eprintln!("bridge: a server went on for {PATIENCE:?} after the end of its input, and is killed");
                let _ = child.kill().await;
                false
            }
        };
        if !read_to_end {
            let _ = reading.await;
        }
        if !well {
            ends.badly.fetch_add(1, Ordering::Relaxed);
        }
        ends.ended.send_modify(|ended| *ended += 1);
    });
    Ok(Input(sender))
}
