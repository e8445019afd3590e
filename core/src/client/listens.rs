//! Owns the frames of listens: the acknowledgment, notifications by subscription id, and the server's cancellation.
//! It must not know how listens are opened, timed or carried over a restart.

use alloc::borrow::Cow;

use super::recent::Ending;
use super::routing::dropped;
use super::{Connection, Event, ListenEnd, Signal, peek};
use crate::{DropReason, Filter, Id, Json, UnreadableReason};

/// The method of the acknowledgment.
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Whether a kind of notification is among what was granted. Kinds only: a part of a subscribed resource has a URI of its own (SUB-11).
fn is_granted(method: &str, granted: &Filter) -> bool {
    match method {
        "notifications/tools/list_changed" => granted.tools_list_changed,
        "notifications/prompts/list_changed" => granted.prompts_list_changed,
        "notifications/resources/list_changed" => granted.resources_list_changed,
        "notifications/resources/updated" => !granted.resource_subscriptions.is_empty(),
        _ => false,
    }
}

impl Connection {
    /// A notification with a subscription id, which is compared as ids are (RTE-04).
    pub(super) fn on_subscription<'b>(
        &mut self,
        token: &'b str,
        method: Cow<'b, str>,
        params: Option<Json<'b>>,
    ) -> Event<'b> {
        let id = Id::parse(token);
        let slot = id.and_then(|id| self.table.find(id));
        let Some(slot) = slot.filter(|&slot| self.table.entry(slot).is_some_and(|entry| entry.listen.is_some())) else {
            return dropped(DropReason::UnknownSubscription, id, None);
        };
        if method == ACKNOWLEDGED {
            return self.on_acknowledged(slot, id, params);
        }
        let listen = self.table.entry(slot).and_then(|entry| entry.listen.as_ref());
        let Some(granted) = listen.filter(|listen| listen.open).and_then(|listen| listen.granted.as_ref()) else {
            // The server breaks an order that it must keep (case 058); what it breaks it with is reported, not delivered.
            return dropped(DropReason::NotAcknowledged, id, None);
        };
        if !is_granted(&method, granted) {
            return dropped(DropReason::OutsideFilter, id, None);
        }
        Event::ListenNotification { listen: self.table.handle_of(slot), method, params }
    }

    fn on_acknowledged<'b>(&mut self, slot: u32, id: Option<Id<'b>>, params: Option<Json<'b>>) -> Event<'b> {
        let notifications = params.and_then(|params| peek::member(params, "notifications"));
        let Some(notifications) = notifications.filter(|json| json.is_object()) else {
            return dropped(DropReason::Unreadable(UnreadableReason::InvalidMessage), id, None);
        };
        let Ok(granted) = notifications.deserialize::<Filter>() else {
            return dropped(DropReason::Unreadable(UnreadableReason::InvalidMessage), id, None);
        };
        let handle = self.table.handle_of(slot);
        self.mark_seen(slot);
        let Some(listen) = self.table.entry_mut(slot).and_then(|entry| entry.listen.as_mut()) else {
            return Event::Handled;
        };
        if listen.open {
            // A second acknowledgment is of no kind that anybody asked for.
            return dropped(DropReason::OutsideFilter, id, None);
        }
        let missing = listen.asked.missing_from(&granted);
        let again = listen.granted.is_some();
        listen.granted = Some(granted);
        listen.open = true;
        self.table.stop_clock(slot);
        if again {
            // The caller has its listen already; that there is a gap is no answer to the frame at hand (SUB-10).
            self.signals.push_back(Signal::Resubscribed { listen: handle });
            return Event::Handled;
        }
        Event::Acknowledged { listen: handle, notifications, missing }
    }

    /// A cancellation by the server counts for a listen only (CAN-10, SUB-08).
    pub(super) fn on_cancelled<'b>(&mut self, params: Option<Json<'b>>) -> Event<'b> {
        let id = params.and_then(|params| peek::member(params, "requestId")).map(Json::get).and_then(Id::parse);
        let reason = params.and_then(|params| peek::member(params, "reason"));
        if self.on_request_cancelled(id, reason) {
            return Event::Handled;
        }
        let slot = id.and_then(|id| self.table.find(id));
        if let Some(slot) = slot.filter(|&slot| self.table.entry(slot).is_some_and(|entry| entry.listen.is_some())) {
            let listen = self.table.handle_of(slot);
            self.finish(slot, Ending::Answered);
            return Event::ListenEnded { listen, how: ListenEnd::Server };
        }
        if id.and_then(Id::as_u64).is_some_and(|id| self.table.recent.take_listen_result(id)) {
            return Event::Handled;
        }
        dropped(DropReason::UnexpectedCancellation, id, None)
    }
}
