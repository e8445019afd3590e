//! Owns the requests of a legacy server: which are open, how they are answered and cancelled, and the batches of revision 2025-03-26 they may
//! come in (LEG-06, LEG-07, LEG-09). It must not know what they ask for.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::routing::dropped;
use super::{Connection, Event, Signal, Stage};
use crate::{DropReason, Era, Id, IdBuf, Instant, Json, SendError, encode};

const METHOD_NOT_FOUND: i64 = -32601;
const UNKNOWN: &str = "Method not found";
const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;
/// The version of which alone a line may be an array of messages.
const BATCHED: &str = "2025-03-26";

/// A request of the server's that its caller has been told of and not answered. Never reused.
///
/// ```
/// use mcp_wire::client::{Event, ServerTicket};
///
/// fn ticket(event: &Event<'_>) -> Option<ServerTicket> {
///     if let Event::ServerRequest { ticket, .. } = event { Some(*ticket) } else { None }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerTicket(u64);

/// The requests of the server that are open.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    open: BTreeMap<u64, Open>,
    next: u64,
    batches: BTreeMap<u64, Batch>,
    /// The batch whose messages are being handed in.
    current: Option<u64>,
}

#[derive(Debug)]
struct Open {
    id: IdBuf,
    batch: Option<u64>,
}

/// Answers that leave as one array.
#[derive(Debug, Default)]
struct Batch {
    answers: Vec<Vec<u8>>,
    owed: usize,
    /// How much of the answers is the core's own, in bytes.
    own: usize,
    /// It began while batches held so many of the core's own answers that none of its requests goes to the caller.
    crowded: bool,
}

impl ServerRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether no further request can be told to the caller.
    fn is_full(&self, limit: usize) -> bool {
        let batch = self.current.and_then(|number| self.batches.get(&number));
        self.open.len() >= limit || batch.is_some_and(|batch| batch.crowded)
    }

    /// The batch whose messages are being handed in.
    fn current_mut(&mut self) -> Option<&mut Batch> {
        self.batches.get_mut(&self.current?)
    }

    fn find(&self, id: Id<'_>) -> Option<u64> {
        self.open.iter().find(|(_, open)| open.id.as_id() == id).map(|(ticket, _)| *ticket)
    }
}

impl Connection {
    /// A request of the server's. A modern one has none (RTE-01, case 048), a legacy one but for pings none before its session is open (LEG-01).
    pub(super) fn on_server_request<'b>(
        &mut self,
        id: Id<'b>,
        method: Cow<'b, str>,
        params: Option<Json<'b>>,
    ) -> Event<'b> {
        if !self.answers(&method) {
            return dropped(DropReason::UnexpectedRequest, Some(id), None);
        }
        let refusal = if method == "ping" {
            return self.answer_itself(id, method, None, |out| encode::raw(out, r#","result":{}"#));
        } else if self.server_requests.find(id).is_some() {
            // The first of that id must not get this answer (MSG-07); to name no id is all that is left.
            return dropped(DropReason::UnexpectedRequest, Some(id), Some(INVALID_REQUEST));
        } else if !self.config.answers_requests {
            (METHOD_NOT_FOUND, UNKNOWN)
        } else if params.is_some_and(|params| !params.is_object()) {
            (-32602, "Invalid params: params must be an object")
        } else if self.server_requests.is_full(self.config.server_request_limit) {
            (INTERNAL_ERROR, "Client busy")
        } else {
            let requests = &mut self.server_requests;
            let ticket = requests.next;
            requests.next += 1;
            let batch = requests.current;
            if let Some(batch) = requests.current_mut() {
                batch.owed += 1;
            }
            requests.open.insert(ticket, Open { id: IdBuf::from(id), batch });
            return Event::ServerRequest { ticket: ServerTicket(ticket), method, params };
        };
        self.answer_itself(id, method, Some(refusal.0), |out| error(out, refusal.0, refusal.1, None))
    }

    /// Only of a legacy server; a ping as soon as `initialize` has left (LEG-05).
    fn answers(&self, method: &str) -> bool {
        match &self.stage {
            Stage::Opening(opening) => method == "ping" && opening.frame < self.out.lent_up_to(),
            Stage::Established => self.era() == Some(Era::Legacy),
            _ => false,
        }
    }

    /// An answer of the core's own. It always finds room: its budget pauses reading instead (LIM-04).
    fn answer_itself<'b>(
        &mut self,
        id: Id<'b>,
        method: Cow<'b, str>,
        code: Option<i64>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Event<'b> {
        let frame = response(id, body);
        let size = frame.len() + 1;
        if let Some(batch) = self.server_requests.current_mut() {
            self.own.hold(size);
            batch.own += size;
            batch.answers.push(frame);
        } else if let Ok(frame) = self.out.push(true, |out| out.extend_from_slice(&frame)) {
            self.own.add(frame, size);
        }
        Event::Answered { method, code }
    }

    /// Answers a request of the server's with a result, which must be an object.
    ///
    /// # Errors
    /// [`SendError::Ended`] where it was cancelled or the session is over, [`SendError::Full`] where there is no room: the answer stays owed, try
    /// again at [`Signal::Writable`]. See [`SendError`] for the rest; nothing has changed then.
    pub fn respond(&mut self, ticket: ServerTicket, result: Json<'_>, now: Instant) -> Result<(), SendError> {
        self.tick(now);
        if !result.is_object() {
            return Err(SendError::InvalidResult);
        }
        self.answer(ticket, |out| {
            encode::raw(out, r#","result":"#);
            encode::raw(out, result.get());
        })
    }

    /// Answers a request of the server's with an error.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn respond_error(
        &mut self,
        ticket: ServerTicket,
        code: i64,
        message: &str,
        data: Option<Json<'_>>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        self.answer(ticket, |out| error(out, code, message, data))
    }

    /// Answers that no such method is known here (LEG-06).
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn respond_unknown(&mut self, ticket: ServerTicket, now: Instant) -> Result<(), SendError> {
        self.respond_error(ticket, METHOD_NOT_FOUND, UNKNOWN, None, now)
    }

    fn answer(&mut self, ticket: ServerTicket, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), SendError> {
        let open = self.server_requests.open.get(&ticket.0).ok_or(SendError::Ended)?;
        let frame = response(open.id.as_id(), body);
        if let Some(batch) = open.batch {
            self.server_requests.open.remove(&ticket.0);
            if let Some(batch) = self.server_requests.batches.get_mut(&batch) {
                batch.answers.push(frame);
            }
            self.settle_in_batch(batch);
            return Ok(());
        }
        match self.out.push(false, |out| out.extend_from_slice(&frame)) {
            Ok(_) => {
                self.server_requests.open.remove(&ticket.0);
                Ok(())
            }
            Err(error) => Err(self.blocked_by(error, frame.len() + 1)),
        }
    }

    /// A cancellation of one of its own requests, by the server (LEG-07).
    pub(super) fn on_request_cancelled(&mut self, id: Option<Id<'_>>, reason: Option<Json<'_>>) -> bool {
        let Some(ticket) = id.and_then(|id| self.server_requests.find(id)) else { return false };
        let open = self.server_requests.open.remove(&ticket);
        let reason = reason.and_then(Json::as_str).map(Cow::into_owned);
        self.signals.push_back(Signal::ServerRequestCancelled { ticket: ServerTicket(ticket), reason });
        if let Some(batch) = open.and_then(|open| open.batch) {
            self.settle_in_batch(batch);
        }
        true
    }

    /// The session is over: nobody waits for an answer any more.
    pub(super) fn forget_server_requests(&mut self) {
        let requests = core::mem::take(&mut self.server_requests);
        self.own.clear();
        for ticket in requests.open.into_keys() {
            self.signals.push_back(Signal::ServerRequestCancelled { ticket: ServerTicket(ticket), reason: None });
        }
        self.server_requests.next = requests.next;
    }

    /// Begins a batch: the messages of one array are handed in one by one, and then [`close_batch`](Self::close_batch) is called. `false` where
    /// no array is a message, because no session of revision 2025-03-26 is open: hand in the line as a whole, which drops it (MSG-01).
    #[must_use]
    pub fn open_batch(&mut self, now: Instant) -> bool {
        self.tick(now);
        if !self.is_established() || self.verdict.as_deref() != Some(BATCHED) {
            return false;
        }
        self.close_batch(now);
        let crowded = self.own.is_crowded();
        let requests = &mut self.server_requests;
        let number = requests.next;
        requests.next += 1;
        requests.current = Some(number);
        requests.batches.insert(number, Batch { crowded, ..Batch::default() });
        true
    }

    /// Ends the batch at hand. Its answers leave as one array once there are all of them; without a request in it, nothing leaves (LEG-09).
    pub fn close_batch(&mut self, now: Instant) {
        self.tick(now);
        if let Some(number) = self.server_requests.current.take() {
            self.check_batch(number);
        }
    }

    fn settle_in_batch(&mut self, number: u64) {
        if let Some(batch) = self.server_requests.batches.get_mut(&number) {
            batch.owed = batch.owed.saturating_sub(1);
        }
        self.check_batch(number);
    }

    fn check_batch(&mut self, number: u64) {
        let requests = &mut self.server_requests;
        if requests.current == Some(number) || requests.batches.get(&number).is_none_or(|batch| batch.owed > 0) {
            return;
        }
        let Some(batch) = requests.batches.remove(&number) else { return };
        if batch.answers.is_empty() {
            return;
        }
        // Owed, and bounded by the requests that may be open and the budget of the core's own.
        let frame = self.out.push(true, |out| {
            for (i, answer) in batch.answers.iter().enumerate() {
                out.push(if i == 0 { b'[' } else { b',' });
                out.extend_from_slice(answer);
            }
            out.push(b']');
        });
        if let Ok(frame) = frame {
            self.own.complete(batch.own);
            self.own.queued(frame, batch.own);
        }
    }
}

fn response(id: Id<'_>, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode::raw(&mut out, r#"{"jsonrpc":"2.0","id":"#);
    encode::raw(&mut out, id.token());
    body(&mut out);
    out.push(b'}');
    out
}

fn error(out: &mut Vec<u8>, code: i64, message: &str, data: Option<Json<'_>>) {
    encode::raw(out, r#","error":{"code":"#);
    encode::int(out, code);
    encode::raw(out, r#","message":"#);
    encode::string(out, message);
    if let Some(data) = data {
        encode::raw(out, r#","data":"#);
        encode::raw(out, data.get());
    }
    out.push(b'}');
}
