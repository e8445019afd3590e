//! Owns the requests of the server to its legacy client: their ids (LEG-07), deadlines, cancellations and answers. In the modern era there
//! is no way to make one (RTE-02). It must not know who waits for an answer.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

use super::{ClientRequest, Connection, Event, Session, Signal, answers};
use crate::client::Dropped;
use crate::send_buffer::{FrameNumber, Progress};
use crate::{Cause, Delivery, DropReason, ErrorObject, Id, Instant, Json, SendError, UnreadableReason, encode};

/// So many requests that have ended are remembered, to tell a late answer from an unknown one.
const REMEMBERED: usize = 64;
/// Notifications that have a call of their own.
const RESERVED: [&str; 3] = ["notifications/cancelled", "notifications/progress", "notifications/message"];

/// What can be set on one request to a client.
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::server::ClientRequestOptions;
///
/// let mut options = ClientRequestOptions::default();
/// options.timeout = Some(Duration::MAX); // a person may take as long as they like
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ClientRequestOptions {
    /// Time for the answer; `None`: the connection's; `Duration::MAX`: none (TMO-01).
    pub timeout: Option<Duration>,
    /// Progress that increases restarts the clock, under this ceiling counted from the first byte (TMO-02, TMO-03). `None`: it does not.
    pub max_timeout: Option<Duration>,
    /// Ask for progress. The token is the request's id.
    pub progress: bool,
}

/// The requests that have not ended.
#[derive(Debug)]
pub(super) struct ClientRequests {
    open: BTreeMap<u64, Open>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// Those of which no byte was lent, in the order of the queue.
    queued: VecDeque<(FrameNumber, u64)>,
    /// The newest that have ended, and whether by an answer.
    ended: VecDeque<(u64, bool)>,
    last_id: u64,
    limit: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct Open {
    frame: FrameNumber,
    lent: bool,
    timeout: Duration,
    max_timeout: Option<Duration>,
    wants_progress: bool,
    /// A frame came for it.
    seen: bool,
    progress: Option<f64>,
    deadline: Option<Instant>,
    ceiling: Option<Instant>,
}

impl ClientRequests {
    pub(super) const fn new(limit: usize, timeout: Duration) -> Self {
        Self {
            open: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            queued: VecDeque::new(),
            ended: VecDeque::new(),
            last_id: 0,
            limit,
            timeout,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Frames below this number have been lent: their clocks start.
    pub(super) fn lent(&mut self, lent_up_to: FrameNumber, now: Instant) {
        while let Some(&(frame, id)) = self.queued.front() {
            if frame >= lent_up_to {
                return;
            }
            self.queued.pop_front();
            let Some(open) = self.open.get_mut(&id).filter(|open| open.frame == frame) else { continue };
            open.lent = true;
            open.ceiling = open.max_timeout.and_then(|most| now.checked_add(most));
            self.restart(id, now);
        }
    }

    fn restart(&mut self, id: u64, now: Instant) {
        let Some(open) = self.open.get_mut(&id) else { return };
        if let Some(before) = open.deadline {
            self.deadlines.remove(&(before, id));
        }
        open.deadline = [now.checked_add(open.timeout), open.ceiling].into_iter().flatten().min();
        if let Some(deadline) = open.deadline {
            self.deadlines.insert((deadline, id));
        }
    }

    /// The request that the client may have seen under this id.
    fn find(&self, id: Id<'_>) -> Option<u64> {
        let id = id.as_u64()?;
        self.open.get(&id).filter(|open| open.lent).map(|_| id)
    }

    fn remove(&mut self, id: u64, answered: bool) -> Option<Open> {
        let open = self.open.remove(&id)?;
        if let Some(deadline) = open.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        if !open.lent {
            self.queued.retain(|(_, queued)| *queued != id);
        }
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, answered));
        Some(open)
    }

    fn reason_of(&self, id: Id<'_>) -> DropReason {
        let ended = id.as_u64().and_then(|id| self.ended.iter().find(|(ended, _)| *ended == id));
        match ended {
            Some((_, true)) => DropReason::DuplicateResponse,
            Some((_, false)) => DropReason::LateResponse,
            None => DropReason::UnknownId,
        }
    }
}

impl Connection {
    /// Sends a request to the client of a legacy session. It ends exactly once: by [`Event::ClientResult`], [`Event::ClientError`] or
    /// [`Signal::ClientRequestEnded`]. Its clock starts with its first byte; so much time it has in the queue as well.
    ///
    /// # Errors
    /// They change nothing. [`SendError::Ended`]: the session is not open any more. [`SendError::NotInitialized`]: the client has not said
    /// `notifications/initialized`, and the method is not `ping` (LEG-08). [`SendError::ReservedMethod`]: the method is a client's.
    /// [`SendError::MethodTooLong`].
    /// [`SendError::ParamsNotAnObject`]. [`SendError::Full`]: as many requests as allowed are in flight, or the outgoing queue is full; there
    /// is no signal for when to try again. [`SendError::TooLarge`]. [`SendError::Closed`]: the input has ended, so that no answer can come.
    pub fn request_client(
        &mut self,
        session: Session,
        method: &str,
        params: Option<Json<'_>>,
        options: ClientRequestOptions,
        now: Instant,
    ) -> Result<ClientRequest, SendError> {
        self.tick(now);
        self.may_tell(session, method == "ping")?;
        if method == "initialize" {
            return Err(SendError::ReservedMethod);
        }
        encode::check_method(method)?;
        if params.is_some_and(|params| !params.is_object()) {
            return Err(SendError::ParamsNotAnObject);
        }
        let requests = &mut self.client_requests;
        // In turn: answers that are owed come first.
        if requests.open.len() >= requests.limit || self.blocked.is_some() {
            return Err(SendError::Full);
        }
        let id = requests.last_id + 1;
        let frame = self.out.push(false, |out| answers::client_request(out, id, method, params, options.progress))?;
        requests.last_id = id;
        requests.queued.push_back((frame, id));
        let open = Open {
            frame,
            lent: false,
            timeout: options.timeout.unwrap_or(requests.timeout),
            max_timeout: options.max_timeout,
            wants_progress: options.progress,
            seen: false,
            progress: None,
            deadline: None,
            ceiling: None,
        };
        requests.open.insert(id, open);
        requests.restart(id, self.now);
        Ok(ClientRequest(id))
    }

    /// Sends a notification to the client of a legacy session. Changes have [`publish`](Self::publish), a request's progress and logs calls of
    /// their own.
    ///
    /// # Errors
    /// As for [`request_client`](Self::request_client).
    pub fn notify_client(
        &mut self,
        session: Session,
        method: &str,
        params: Option<Json<'_>>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        self.may_tell(session, false)?;
        if RESERVED.contains(&method) {
            return Err(SendError::ReservedMethod);
        }
        encode::check_method(method)?;
        if params.is_some_and(|params| !params.is_object()) {
            return Err(SendError::ParamsNotAnObject);
        }
        if self.blocked.is_some() {
            return Err(SendError::Full);
        }
        self.out.push(false, |out| answers::client_notification(out, method, params)).map(|_| ())
    }

    fn may_tell(&self, session: Session, early: bool) -> Result<(), SendError> {
        if !self.takes_input() {
            return Err(SendError::Closed);
        }
        match self.sessions.is_ready(session) {
            None => Err(SendError::Ended),
            Some(false) if !early => Err(SendError::NotInitialized),
            Some(_) => Ok(()),
        }
    }

    /// Gives a request to the client up: W-01, or nothing at all if no byte of it was lent. [`Signal::ClientRequestEnded`] follows, unless it
    /// has ended.
    pub fn cancel_client_request(&mut self, request: ClientRequest, reason: Option<&str>, now: Instant) {
        self.tick(now);
        self.end_client_request(request.0, Cause::Cancelled, reason);
    }

    /// Requests to the client that have not ended.
    #[must_use]
    pub fn client_requests(&self) -> usize {
        self.client_requests.open.len()
    }

    /// Ends a request without an answer, and tells the client if it may have seen it (CAN-01, CAN-02).
    fn end_client_request(&mut self, id: u64, cause: Cause, reason: Option<&str>) {
        let Some(delivery) = self.forget_client_request(id, cause) else { return };
        if delivery != Delivery::NotSent {
            // At most one for each request that was lent, so the room above the limit is bounded (LIM-04).
            let _ = self.out.push(true, |out| answers::cancellation(out, id, reason));
        }
        self.made_room();
    }

    fn forget_client_request(&mut self, id: u64, cause: Cause) -> Option<Delivery> {
        let open = self.client_requests.remove(id, false)?;
        let delivery = match self.out.progress(open.frame) {
            _ if !open.lent => {
                self.out.withdraw(open.frame);
                Delivery::NotSent
            }
            _ if open.seen => Delivery::Started,
            Progress::Accepted => Delivery::Sent,
            Progress::Queued | Progress::Lent | Progress::Partly => Delivery::PartlySent,
        };
        self.signals.push_back(Signal::ClientRequestEnded { request: ClientRequest(id), cause, delivery });
        Some(delivery)
    }

    /// No answer can come any more. Nothing is said to the client: it has gone, or is about to.
    pub(super) fn end_client_requests(&mut self) {
        while let Some((&id, _)) = self.client_requests.open.first_key_value() {
            self.forget_client_request(id, Cause::Closed);
        }
    }

    /// Ends the requests whose time is over (TMO-01).
    pub(super) fn expire_client_requests(&mut self) {
        while let Some(&(deadline, id)) = self.client_requests.deadlines.first() {
            if deadline > self.now {
                return;
            }
            self.end_client_request(id, Cause::TimedOut, Some("timeout"));
        }
    }

    /// A response of the client: to the request of its id, or to nothing (RTE-03). A modern server sends no requests (RTE-01).
    pub(super) fn client_response<'b>(
        &mut self,
        id: Option<Id<'b>>,
        answer: Result<Json<'b>, ErrorObject<'b>>,
    ) -> Event<'b> {
        let code = answer.as_ref().err().map(|error| error.code);
        let found = id.and_then(|id| self.client_requests.find(id));
        let Some(found) = found.filter(|&found| self.client_requests.remove(found, true).is_some()) else {
            let reason = match id {
                _ if !self.sessions.is_open() => DropReason::UnexpectedResponse,
                Some(id) => self.client_requests.reason_of(id),
                None => DropReason::UnattributedError,
            };
            return Event::Dropped(Dropped { reason, id, code, len: 0 });
        };
        let request = ClientRequest(found);
        match answer {
            Ok(result) => Event::ClientResult { request, result },
            Err(error) => Event::ClientError { request, error },
        }
    }

    /// A response that cannot be read fails the request of its id at once, and that is cancelled, as the client may still be at work (UNR-04).
    pub(super) fn unreadable_client_response(&mut self, id: Id<'_>, code: Option<i64>, reason: UnreadableReason) {
        if let Some(id) = self.client_requests.find(id) {
            let cause = Cause::InvalidResponse { code, reason: Some(reason) };
            self.end_client_request(id, cause, Some("unreadable response"));
        }
    }

    /// Progress of a request to a legacy client, by its token (RTE-05).
    pub(super) fn client_progress<'b>(&mut self, params: Option<Json<'b>>) -> Event<'b> {
        let (mut token, mut progress) = (None, None);
        for (name, value) in params.into_iter().flat_map(Json::members) {
            match &*name {
                "progressToken" => token = Id::parse(value.get()),
                "progress" => progress = value.deserialize::<f64>().ok(),
                _ => {}
            }
        }
        let requests = &mut self.client_requests;
        let found = token.and_then(|token| requests.find(token));
        let open = found.and_then(|id| requests.open.get_mut(&id)).filter(|open| open.wants_progress);
        let (Some(id), Some(open), Some(params)) = (found, open, params) else {
            return Event::Dropped(Dropped { reason: DropReason::UnknownProgressToken, id: token, code: None, len: 0 });
        };
        let increases = progress.is_some_and(|progress| open.progress.is_none_or(|last| progress > last));
        // Any frame for it shows that the client knows it (PRG-06), also one whose value says nothing.
        open.seen = true;
        if increases {
            open.progress = progress;
            if open.max_timeout.is_some() {
                requests.restart(id, self.now);
            }
        }
        Event::ClientProgress { request: ClientRequest(id), params }
    }
}
