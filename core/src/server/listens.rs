//! Owns the listen streams: what each was granted, the changes published to it, its end (SUB-01 to SUB-07, SUB-12, SUB-13). A legacy
//! session has one that needs no request (LEG-08). It must not know requests that handlers run for.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::admission::Notes;
use super::answers;
use super::refusals::Refusal;
use super::{Change, Config, Connection, Event};
use crate::{Filter, Id, IdBuf, Instant, Json, SendError};

/// What keeping one URI costs besides its text, in bytes.
const PER_URI: usize = 64;

/// What the server's capabilities allow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grants {
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(super) subscribe: bool,
    /// Log messages (LOG-01).
    pub(super) logging: bool,
}

impl Grants {
    pub(super) fn new(capabilities: Json<'_>) -> Self {
        let mut grants = Self::default();
        for (name, value) in capabilities.members() {
            let says = |key: &str| value.members().any(|(name, value)| name == key && value.get() == "true");
            match &*name {
                "tools" => grants.tools = says("listChanged"),
                "prompts" => grants.prompts = says("listChanged"),
                "resources" => (grants.resources, grants.subscribe) = (says("listChanged"), says("subscribe")),
                "logging" => grants.logging = true,
                _ => {}
            }
        }
        grants
    }
}

/// The open listens.
#[derive(Debug)]
pub(super) struct Listens {
    /// In the order in which they were opened.
    open: BTreeMap<u64, Listen>,
    /// What the legacy session is told of: every list, and what it subscribed to.
    session: Option<Listen>,
    next: u64,
    limit: usize,
    /// What the URIs of all together cost.
    bytes: usize,
    bytes_limit: usize,
    /// Some listen has missed something for lack of room.
    missed: bool,
}

#[derive(Debug)]
struct Listen {
    /// `None` for the legacy session.
    id: Option<IdBuf>,
    /// Nothing is told yet: the legacy client has not said that it is initialized (LEG-08).
    held: bool,
    /// The kinds of list that it was granted, and those that changed and could not be told yet.
    lists: Lists,
    missed: Lists,
    /// Sorted by URI.
    uris: Vec<Subscribed>,
    cost: usize,
    /// Its frames that may still be queued.
    notes: Notes,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

struct Subscribed {
    uri: Box<str>,
    /// It changed, and that could not be told yet.
    missed: bool,
}

/// Without the URI, which is the client's (SEC-03).
impl fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribed").field("missed", &self.missed).finish_non_exhaustive()
    }
}

const TOOLS: &str = r#""notifications/tools/list_changed""#;
const PROMPTS: &str = r#""notifications/prompts/list_changed""#;
const RESOURCES: &str = r#""notifications/resources/list_changed""#;
const UPDATED: &str = r#""notifications/resources/updated""#;

impl Listens {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            open: BTreeMap::new(),
            session: None,
            next: 0,
            limit: config.listen_limit,
            bytes: 0,
            bytes_limit: config.listen_bytes_limit,
            missed: false,
        }
    }

    /// A legacy client hears of every list that the server declares, once it is ready.
    pub(super) fn open_session(&mut self, grants: Grants) {
        self.close_session();
        let lists = Lists { tools: grants.tools, prompts: grants.prompts, resources: grants.resources };
        self.session = Some(Listen {
            id: None,
            held: true,
            lists,
            missed: Lists::default(),
            uris: Vec::new(),
            cost: 0,
            notes: Notes::default(),
        });
    }

    pub(super) fn close_session(&mut self) {
        if let Some(before) = self.session.take() {
            self.bytes = self.bytes.saturating_sub(before.cost);
        }
    }

    pub(super) fn release_session(&mut self) {
        if let Some(session) = &mut self.session {
            session.held = false;
            self.missed = true;
        }
    }

    /// Subscribes the legacy session to a resource; `false` if there is no room for it. Twice is once.
    pub(super) fn subscribe(&mut self, uri: Cow<'_, str>) -> bool {
        let Some(session) = &mut self.session else { return false };
        let Err(at) = session.uris.binary_search_by(|s| (*s.uri).cmp(&uri)) else { return true };
        let cost = uri.len().saturating_add(PER_URI);
        if cost > self.bytes_limit.saturating_sub(self.bytes) {
            return false;
        }
        session.uris.insert(at, Subscribed { uri: uri.into_owned().into_boxed_str(), missed: false });
        session.cost = session.cost.saturating_add(cost);
        self.bytes = self.bytes.saturating_add(cost);
        true
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        let Some(session) = &mut self.session else { return };
        let Ok(at) = session.uris.binary_search_by(|s| (*s.uri).cmp(uri)) else { return };
        session.uris.remove(at);
        let cost = uri.len().saturating_add(PER_URI);
        session.cost = session.cost.saturating_sub(cost);
        self.bytes = self.bytes.saturating_sub(cost);
    }

    /// What of a requested filter is honoured (SUB-02), in the order of the request and without repetitions.
    fn grant(&self, asked: Json<'_>, grants: Grants) -> Result<Filter, Refusal<'static>> {
        let mut granted = Filter::default();
        for (name, value) in asked.members() {
            let flag = || match value.get() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(Refusal::Filter),
            };
            match &*name {
                "toolsListChanged" => granted.tools_list_changed = flag()? && grants.tools,
                "promptsListChanged" => granted.prompts_list_changed = flag()? && grants.prompts,
                "resourcesListChanged" => granted.resources_list_changed = flag()? && grants.resources,
                "resourceSubscriptions" => {
                    let budget = if grants.subscribe { self.bytes_limit.saturating_sub(self.bytes) } else { 0 };
                    let uris = uris(value, budget)?;
                    if grants.subscribe {
                        granted.resource_subscriptions = uris.ok_or(Refusal::Busy)?;
                    }
                }
                _ => {}
            }
        }
        Ok(granted)
    }
}

/// The distinct strings of an array, in order; `None` if keeping them costs more than the budget.
fn uris(array: Json<'_>, budget: usize) -> Result<Option<Vec<String>>, Refusal<'static>> {
    struct Strings(usize);
    impl<'de> Visitor<'de> for Strings {
        type Value = Option<Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of strings")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
            let (mut strings, mut left) = (Vec::new(), self.0);
            while let Some(string) = array.next_element::<String>()? {
                match left.checked_sub(string.len().saturating_add(PER_URI)) {
                    Some(rest) => left = rest,
                    None => {
                        // Too many: the rest is only read over.
                        while array.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(None);
                    }
                }
                strings.push(string);
            }
            Ok(Some(strings))
        }
    }
    let mut reader = serde_json::Deserializer::from_str(array.get());
    let Some(mut strings) = reader.deserialize_seq(Strings(budget)).map_err(|_| Refusal::Filter)? else {
        return Ok(None);
    };
    let mut seen = BTreeSet::new();
    let first: Vec<bool> = strings.iter().map(|string| seen.insert(string.as_str())).collect();
    let mut first = first.into_iter();
    strings.retain(|_| first.next().unwrap_or(true));
    Ok(Some(strings))
}

impl Connection {
    /// Opens a listen, if there is room for it: the acknowledgment is its first frame (SUB-01).
    pub(super) fn open_listen<'b>(&mut self, id: Id<'b>, asked: Json<'b>) -> Event<'b> {
        let granted = match self.listens.grant(asked, self.grants) {
            Ok(granted) => granted,
            Err(refusal) => return self.refuse(id, &refusal),
        };
        if self.is_draining() {
            return self.refuse(id, &Refusal::ShuttingDown);
        }
        if self.listens.open.len() >= self.listens.limit {
            return self.refuse(id, &Refusal::Busy);
        }
        let mut notes = Notes::default();
        if let Some(frame) = self.own(|out, _| answers::acknowledgment(out, id.token(), &granted)) {
            notes.add(frame, &self.out);
        }
        let lists = Lists {
            tools: granted.tools_list_changed,
            prompts: granted.prompts_list_changed,
            resources: granted.resources_list_changed,
        };
        let mut uris: Vec<Subscribed> = (granted.resource_subscriptions.into_iter())
            .map(|uri| Subscribed { uri: uri.into_boxed_str(), missed: false })
            .collect();
        uris.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        let cost = uris.iter().fold(0_usize, |sum, s| sum.saturating_add(s.uri.len()).saturating_add(PER_URI));
        let listens = &mut self.listens;
        listens.bytes = listens.bytes.saturating_add(cost);
        let number = listens.next;
        listens.next += 1;
        let id_buf = Some(IdBuf::from(id));
        let listen = Listen { id: id_buf, held: false, lists, missed: Lists::default(), uris, cost, notes };
        listens.open.insert(number, listen);
        self.table.open_listen(id, number);
        Event::Handled
    }

    /// The client has cancelled a listen: nothing more is written for it, no result either (SUB-06), whatever the reason says (SUB-13).
    pub(super) fn cancel_listen(&mut self, number: u64) {
        if let Some(listen) = self.remove_listen(number) {
            listen.notes.withdraw(&mut self.out);
            self.made_room();
        }
    }

    /// Ends each listen with its result and then the cancellation (SUB-07).
    pub(super) fn end_listens(&mut self) {
        self.tell_missed();
        while let Some((&number, _)) = self.listens.open.first_key_value() {
            let Some(listen) = self.remove_listen(number) else { return };
            let Some(id) = &listen.id else { continue };
            let token = id.as_id().token();
            self.own(|out, texts| answers::listen_result(out, token, texts));
            self.own(|out, _| answers::listen_ended(out, token));
        }
        self.listens.close_session();
    }

    /// The stream is gone.
    pub(super) fn forget_listens(&mut self) {
        while let Some((&number, _)) = self.listens.open.first_key_value() {
            self.remove_listen(number);
        }
        self.listens.close_session();
    }

    fn remove_listen(&mut self, number: u64) -> Option<Listen> {
        let listen = self.listens.open.remove(&number)?;
        self.listens.bytes = self.listens.bytes.saturating_sub(listen.cost);
        if let Some(id) = &listen.id {
            self.table.close_listen(id.as_id());
        }
        Some(listen)
    }

    /// Tells each listen that asked for it of a change (SUB-03, SUB-05), and a legacy client (LEG-08): of lists unasked, of a resource that it
    /// subscribed to; before it is initialized, that waits. Returns how many are told. While half of the outgoing queue is
    /// taken, equal changes are merged and told once there is room; an update of a part then names the resource subscribed to.
    pub fn publish(&mut self, change: Change<'_>, now: Instant) -> usize {
        self.tick(now);
        let half = self.config.queue_limit / 2;
        let mut told = 0;
        for listen in self.listens.open.values_mut().chain(&mut self.listens.session) {
            let (method, uri, missed) = match change {
                Change::ToolsList if listen.lists.tools => (TOOLS, None, &mut listen.missed.tools),
                Change::PromptsList if listen.lists.prompts => (PROMPTS, None, &mut listen.missed.prompts),
                Change::ResourcesList if listen.lists.resources => (RESOURCES, None, &mut listen.missed.resources),
                Change::Resource { subscribed, uri } => {
                    let Ok(at) = listen.uris.binary_search_by(|s| (*s.uri).cmp(subscribed)) else { continue };
                    let Some(subscribed) = listen.uris.get_mut(at) else { continue };
                    (UPDATED, Some(uri), &mut subscribed.missed)
                }
                _ => continue,
            };
            told += 1;
            // One that waits already says the same.
            if *missed {
                continue;
            }
            let token = listen.id.as_ref().map(|id| id.as_id().token());
            let pushed = if listen.held || self.out.len() > half {
                Err(SendError::Full)
            } else {
                self.out.push(false, |out| answers::event(out, token, method, uri))
            };
            match pushed {
                Ok(frame) => listen.notes.add(frame, &self.out),
                // No room will ever do.
                Err(SendError::TooLarge { .. }) => told -= 1,
                Err(_) => {
                    *missed = true;
                    self.listens.missed = true;
                }
            }
        }
        told
    }

    /// Tells what was missed, as far as there is room.
    pub(super) fn tell_missed(&mut self) {
        if !self.listens.missed {
            return;
        }
        let half = self.config.queue_limit / 2;
        let out = &mut self.out;
        for listen in self.listens.open.values_mut().chain(&mut self.listens.session).filter(|listen| !listen.held) {
            let token = listen.id.as_ref().map(|id| id.as_id().token());
            let lists = [
                (TOOLS, &mut listen.missed.tools),
                (PROMPTS, &mut listen.missed.prompts),
                (RESOURCES, &mut listen.missed.resources),
            ];
            let lists = lists.into_iter().map(|(method, missed)| (method, None, missed));
            let uris = listen.uris.iter_mut().map(|s| (UPDATED, Some(&*s.uri), &mut s.missed));
            for (method, uri, missed) in lists.chain(uris).filter(|(_, _, missed)| **missed) {
                if out.len() > half {
                    return;
                }
                match out.push(false, |out| answers::event(out, token, method, uri)) {
                    Ok(frame) => listen.notes.add(frame, out),
                    // It will never fit; or not now, though half of the queue is free: then it is nearly as large as the queue.
                    Err(SendError::TooLarge { .. }) => {}
                    Err(_) => return,
                }
                *missed = false;
            }
        }
        self.listens.missed = false;
    }
}
