//! Owns the output for people: results that can be read, a live bar for progress on a terminal, one clear sentence for each
//! failure. It must not know how an event came about.

use std::collections::BTreeMap;
use std::io::{self, Write};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcp_wire::lifecycle::{Escalation, ExitStatus};
use mcp_wire::{Json, JsonBuf};
use serde::Deserialize;

use super::event::Event;
use super::output::Printer;
use super::session::Shown;
use super::text::{pretty, result, safe, safe_line};

pub(super) struct HumanPrinter {
    /// There is one request, so nobody asks which.
    single: bool,
    start_failed: bool,
    /// Draws nothing where standard error is no terminal.
    bars: MultiProgress,
    by_key: BTreeMap<String, ProgressBar>,
}

impl HumanPrinter {
    pub(super) fn new(single: bool) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self { single, start_failed: false, bars, by_key: BTreeMap::new() }
    }

    /// `a: ` where there are several requests.
    fn of(&self, key: &str) -> String {
        if self.single { String::new() } else { format!("{}: ", safe_line(key)) }
    }

    /// One sentence on standard error. That it cannot be written is no reason to stop.
    fn say(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(io::stderr().lock(), "mcp-call: {text}");
        });
    }

    fn print(&self, out: &mut dyn Write, key: &str, text: &str) -> io::Result<()> {
        let head = match self.of(key) {
            head if head.is_empty() => head,
            head if text.contains('\n') => format!("{}\n", head.trim_end()),
            head => head,
        };
        self.bars.suspend(|| {
            writeln!(out, "{head}{text}")?;
            out.flush()
        })
    }

    fn end_bar(&mut self, key: &str) {
        if let Some(bar) = self.by_key.remove(key) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }

    fn progress(&mut self, key: &str, params: Option<&JsonBuf>) {
        #[derive(Deserialize)]
        struct Progress {
            progress: f64,
            total: Option<f64>,
            message: Option<String>,
        }
        let Some(Ok(at)) = params.map(|params| params.as_json().deserialize::<Progress>()) else { return };
        if self.bars.is_hidden() {
            return;
        }
        let share = at.total.filter(|total| *total > 0.0).map(|total| at.progress / total);
        let template = match share {
            Some(_) => "{prefix}[{bar:40}] {percent}% {msg}",
            None => "{prefix}{spinner} {msg}",
        };
        let prefix = self.of(key);
        let bar = self.by_key.entry(key.to_owned()).or_insert_with(|| {
            // Dressed before it is seen. A bar counts in whole steps; a thousandth is finer than any terminal shows.
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden()).with_prefix(prefix);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            self.bars.add(bar)
        });
        let total = at.total.map(|total| format!("/{total}")).unwrap_or_default();
        let message = at.message.map(|message| format!(" {}", safe_line(&message))).unwrap_or_default();
        bar.set_message(format!("{}{total}{message}", at.progress));
        match share {
            Some(share) => bar.set_position((share * 1000.0).clamp(0.0, 1000.0) as u64),
            None => bar.tick(),
        }
    }

    fn error(&self, key: &str, error: Json<'_>) {
        #[derive(Deserialize)]
        struct ErrorObject {
            code: i64,
            message: String,
        }
        let of = self.of(key);
        let Ok(error_object) = error.deserialize::<ErrorObject>() else {
            return self.say(&format!(
                "{of}the server answered with an error that has no code and message: {}",
                safe_line(error.get())
            ));
        };
        let what = match error_object.code {
            -32601 => "; the server does not have this method",
            -32602 => "; look at the parameters",
            -32021 => "; --capabilities says what the client can do",
            _ => "",
        };
        self.say(&format!(
            "{of}the server answered with error {}: {}{what}",
            error_object.code,
            safe_line(&error_object.message)
        ));
        if let Some((_, data)) = error.members().find(|(name, _)| name == "data") {
            self.bars.suspend(|| {
                let _ = writeln!(io::stderr().lock(), "{}", pretty(data));
            });
        }
    }

    fn failed(&self, key: &str, cause: &str, detail: &str) {
        let of = self.of(key);
        if self.start_failed && cause == "closed" {
            // One request fails for the one reason that stands there already.
            if !self.single {
                self.say(&format!("{of}not sent"));
            }
            return;
        }
        let detail = if detail.is_empty() { cause } else { detail };
        let options = if cause == "timeout" { " (--timeout, --max-timeout)" } else { "" };
        self.say(&format!("{of}{}{options}", safe_line(detail)));
    }

    fn notification(
        &mut self,
        out: &mut dyn Write,
        key: Option<&str>,
        method: &str,
        params: Option<&JsonBuf>,
    ) -> io::Result<()> {
        match (method, key) {
            ("notifications/progress", Some(key)) => self.progress(key, params),
            ("notifications/message", _) => {
                #[derive(Deserialize)]
                struct Message<'a> {
                    level: String,
                    logger: Option<String>,
                    #[serde(borrow)]
                    data: &'a serde_json::value::RawValue,
                }
                let message = params.and_then(|params| params.as_json().deserialize::<Message<'_>>().ok());
                if let Some(message) = message {
                    let data = serde_json::from_str::<String>(message.data.get())
                        .unwrap_or_else(|_| message.data.get().to_owned());
                    let logger = message.logger.map(|logger| format!(" {}", safe_line(&logger))).unwrap_or_default();
                    self.say(&format!("log {}{logger}: {}", safe_line(&message.level), safe_line(&data)));
                }
            }
            (_, key) => {
                // Of a change only the resource is news; the rest of its params is bookkeeping.
                #[derive(Deserialize, Default)]
                struct Uri {
                    uri: Option<String>,
                }
                let uri =
                    params.and_then(|params| params.as_json().deserialize::<Uri>().ok()).and_then(|params| params.uri);
                let text = match uri {
                    Some(uri) => format!("{} {}", safe_line(method), safe_line(&uri)),
                    None => safe_line(method),
                };
                match key {
                    Some(key) => self.print(out, key, &text)?,
                    // Nobody asked for it: a legacy server tells everyone of its changes.
                    None => self.say(&format!("the server says: {text}")),
                }
            }
        }
        Ok(())
    }
}

impl Printer for HumanPrinter {
    fn show(&mut self, shown: &Shown, out: &mut dyn Write) -> io::Result<()> {
        let event = match shown {
            Shown::Event(event) => event,
            Shown::StillStarting => {
                self.say("waiting for the server to start (a first start may download packages; Ctrl-C stops)");
                return Ok(());
            }
        };
        match event {
            Event::Started { .. } | Event::Era { .. } => {}
            Event::StartFailed { detail, .. } => {
                self.start_failed = true;
                self.say(&format!("the server did not start: {}", safe(detail)));
            }
            Event::Result { key, result: value } => {
                self.end_bar(key);
                let (text, failed) = result(value.as_json());
                self.print(out, key, &text)?;
                if failed {
                    self.say(&format!("{}the tool says that it failed", self.of(key)));
                }
                if wants_input(value.as_json()) {
                    self.say(&format!(
                        "{}the server wants input first: ask again with \"inputResponses\" (an answer for each key) and its \"requestState\"",
                        self.of(key)
                    ));
                }
            }
            Event::Error { key, error } => {
                self.end_bar(key);
                self.error(key, error.as_json());
            }
            Event::Failed { key, cause, detail, .. } => {
                self.end_bar(key);
                self.failed(key, cause, detail);
            }
            Event::Acknowledged { key, notifications } => {
                self.print(out, key, &format!("listening to {}", safe(notifications.as_json().get())))?;
            }
            Event::ListenEnded { key, how } => {
                let text = match *how {
                    "graceful" => "the server has ended the listen",
                    "server" => "the server has cancelled the listen",
                    "lagged" => "the listen was ended: its changes came faster than they could be shown",
                    "closed" => "the listen ended with the connection",
                    _ => "the listen was cancelled",
                };
                self.print(out, key, text)?;
            }
            Event::Resubscribed { key } => self.print(out, key, "listening again; changes in between were missed")?,
            Event::Notification { key, method, params } => {
                self.notification(out, key.as_deref(), method, params.as_ref())?;
            }
            Event::Dropped { reason, id, code } => {
                let id =
                    id.as_ref().map(|id| format!(" with id {}", safe_line(id.as_id().token()))).unwrap_or_default();
                let code = code.map(|code| format!(" (error {code})")).unwrap_or_default();
                self.say(&format!("a line of the server's{id} was dropped: {}{code}", reason.replace('_', " ")));
            }
            Event::ServerRequest { method, answered } => {
                let what = if *answered == "result" { "was answered" } else { "was refused" };
                self.say(&format!("the server's request {} {what}", safe_line(method)));
            }
            Event::Stderr { line } => self.bars.suspend(|| {
                let _ = writeln!(io::stderr().lock(), "{}", safe_line(line));
            }),
            Event::Restarted { exit, .. } => {
                self.say(&format!("the server ended by itself{} and is started again", ended(*exit)));
            }
            Event::IdleStopped { .. } => self.say("the server is stopped because nobody uses it"),
            Event::Missed { events } => {
                self.say(&format!("{events} notifications came faster than they could be shown"));
            }
            Event::Closed { exit, escalation, .. } => match escalation {
                Escalation::None => match exit {
                    None | Some(ExitStatus::Code(0)) => {}
                    Some(_) if self.start_failed => {}
                    Some(_) => self.say(&format!("the server ended{}", ended(*exit))),
                },
                Escalation::Terminate => self.say("the server did not end with its input and had to be terminated"),
                _ if exit.is_none() => self.say("the server does not end though it was killed, and is left to itself"),
                _ => self.say("the server did not end when asked and had to be killed"),
            },
        }
        Ok(())
    }

    fn finish(&mut self) {
        for (_, bar) in std::mem::take(&mut self.by_key) {
            bar.finish_and_clear();
        }
    }
}

/// Whether a result asks, in place of an answer.
fn wants_input(result: Json<'_>) -> bool {
    result.members().any(|(name, value)| name == "resultType" && value.get() == "\"input_required\"")
}

fn ended(exit: Option<ExitStatus>) -> String {
    exit.map(|exit| format!(" with {exit}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(single: bool, events: &[Event]) -> String {
        let mut out = Vec::new();
        let mut printer = HumanPrinter::new(single);
        for event in events {
            printer.show(&Shown::Event(event.clone()), &mut out).expect("memory can be written");
        }
        String::from_utf8(out).expect("UTF-8")
    }

    fn text(key: &str, text: &str) -> Event {
        let result = JsonBuf::new(&serde_json::json!({"content": [{"type": "text", "text": text}]})).expect("JSON");
        Event::Result { key: key.into(), result }
    }

    #[test]
    fn one_request_shows_its_text_and_nothing_else() {
        let events = [
            Event::Started { pid: 1, restarts: 0 },
            Event::Era { era: "modern", version: "2026-07-28".into() },
            text("1", "42"),
            Event::Closed { exit: Some(ExitStatus::Code(0)), escalation: Escalation::None, restarts: 0 },
        ];
        assert_eq!(shown(true, &events), "42\n");
    }

    #[test]
    fn several_requests_show_their_keys() {
        assert_eq!(shown(false, &[text("a", "one"), text("b", "two\nlines")]), "a: one\nb:\ntwo\nlines\n");
    }

    #[test]
    fn a_change_shows_its_resource() {
        let params = JsonBuf::new(&serde_json::json!({"_meta": {}, "uri": "demo://clock\u{1b}"})).ok();
        let event =
            Event::Notification { key: Some("s".into()), method: "notifications/resources/updated".into(), params };
        assert_eq!(shown(false, &[event]), "s: notifications/resources/updated demo://clock\\u{1b}\n");
    }
}
