//! Owns the words of the builders of all runtimes, written once: a macro for want of a method that is shared across crates.
//! It must not know what they do: that is in `Options`.

/// The methods of [`Options`], for a builder that holds them in a field `options`: the builders of all runtimes have the same words.
#[doc(hidden)]
#[macro_export]
macro_rules! client_builder_methods {
    () => {
        /// The client's capabilities, an object (META-01). Anything else is refused when the client is started.
        #[must_use]
        pub fn capabilities(mut self, capabilities: impl $crate::client::__private::Serialize) -> Self {
            self.options = self.options.capabilities(capabilities);
            self
        }

        /// Leaves name and version out of the requests (META-01).
        #[must_use]
        pub fn anonymous(mut self) -> Self {
            self.options = self.options.anonymous();
            self
        }

        /// Which eras to speak: both otherwise. With both, a server is probed, and asked for the legacy handshake if it knows no probe (VER-04).
        #[must_use]
        pub fn eras(mut self, eras: $crate::client::__private::Eras) -> Self {
            self.options = self.options.eras(eras);
            self
        }

        /// Legacy protocol versions to speak, the one to ask for first; none: a legacy server is an error.
        #[must_use]
        pub fn legacy_versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
            self.options = self.options.legacy_versions(versions);
            self
        }

        /// Answers the requests of a legacy server, such as `roots/list` and `elicitation/create` (LEG-06); without it each gets -32601. Declare what it can
        /// do with [`capabilities`](Self::capabilities). The future is polled by the driver, many at a time: it must not block, and is dropped when
        /// the server cancels its request. A panic ends its request with -32603.
        #[must_use]
        pub fn on_request<F, T>(
            mut self,
            handler: impl Fn($crate::client::ServerRequest) -> F + Send + Sync + 'static,
        ) -> Self
        where
            F: ::core::future::Future<Output = Result<T, $crate::server::RpcError>> + Send + 'static,
            T: $crate::client::__private::Serialize + 'static,
        {
            self.options = self.options.on_request(handler);
            self
        }

        /// Modern protocol versions to speak, the preferred one first; none: the legacy era only.
        #[must_use]
        pub fn versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
            self.options = self.options.versions(versions);
            self
        }

        /// A version that the server is known to speak: no probe then (VER-08).
        #[must_use]
        pub fn known_version(mut self, version: impl Into<String>) -> Self {
            self.options = self.options.known_version(version);
            self
        }

        /// Time for each request, unless it has its own (TMO-01). 60 s otherwise; `Duration::MAX`: none.
        #[must_use]
        pub fn request_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options = self.options.request_timeout(timeout);
            self
        }

        /// Time a request may wait before its first byte leaves (CAN-03). The request's timeout otherwise.
        #[must_use]
        pub fn queue_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options = self.options.queue_timeout(timeout);
            self
        }

        /// Time for the answer to the probe (VER-04). 10 s otherwise.
        #[must_use]
        pub fn probe_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options = self.options.probe_timeout(timeout);
            self
        }

        /// Time from a start to an established connection. 120 s otherwise.
        #[must_use]
        pub fn start_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options = self.options.start_timeout(timeout);
            self
        }

        /// Whether requests made while the server restarts wait for it (they do otherwise) or are refused (RST-07).
        #[must_use]
        pub fn wait_for_restart(mut self, wait: bool) -> Self {
            self.options = self.options.wait_for_restart(wait);
            self
        }

        /// Requests in flight at once. 1024 otherwise.
        #[must_use]
        pub fn in_flight_limit(mut self, requests: usize) -> Self {
            self.options = self.options.in_flight_limit(requests);
            self
        }

        /// Listens open at once. 64 otherwise.
        #[must_use]
        pub fn listen_limit(mut self, listens: usize) -> Self {
            self.options = self.options.listen_limit(listens);
            self
        }

        /// Bytes that may wait to be written. 16 MiB otherwise.
        #[must_use]
        pub fn queue_limit(mut self, bytes: usize) -> Self {
            self.options = self.options.queue_limit(bytes);
            self
        }

        /// Longest line accepted from the server, in bytes (LIM-01). 16 MiB otherwise.
        #[must_use]
        pub fn line_limit(mut self, bytes: usize) -> Self {
            self.options = self.options.line_limit(bytes);
            self
        }

        /// Wait after each step of the shutdown (SHD-01). 2 s otherwise.
        #[must_use]
        pub fn grace(mut self, grace: ::core::time::Duration) -> Self {
            self.options = self.options.grace(grace);
            self
        }

        /// Restarts before giving up (RST-01). 5 otherwise; 0: none.
        #[must_use]
        pub fn restarts(mut self, restarts: u32) -> Self {
            self.options = self.options.restarts(restarts);
            self
        }

        /// Delay before the first restart, and the longest; it doubles from one to the other. 0.5 s and 30 s otherwise.
        #[must_use]
        pub fn restart_delay(mut self, first: ::core::time::Duration, longest: ::core::time::Duration) -> Self {
            self.options = self.options.restart_delay(first, longest);
            self
        }

        /// Stable time after which the restarts are full again. 60 s otherwise.
        #[must_use]
        pub fn restart_stable(mut self, stable: ::core::time::Duration) -> Self {
            self.options = self.options.restart_stable(stable);
            self
        }

        /// Seed of the jitter in the delays; a random one otherwise.
        #[must_use]
        pub fn seed(mut self, seed: u64) -> Self {
            self.options = self.options.seed(seed);
            self
        }

        /// Starts the server with the first request, not before (RST-08).
        #[must_use]
        pub fn lazy(mut self, lazy: bool) -> Self {
            self.options = self.options.lazy(lazy);
            self
        }

        /// Stops the server after that long without a request or listen; the next one starts it again (RST-09).
        #[must_use]
        pub fn idle_stop(mut self, after: ::core::time::Duration) -> Self {
            self.options = self.options.idle_stop(after);
            self
        }

        /// A function that gets the notifications that belong to no request and no listen (RTE-06), from the first byte on. It runs on the driver: it must not block, but it may
        /// send requests. It must not hold a `Client`. Without it they wait in `Client::notifications`.
        #[must_use]
        pub fn on_notification(mut self, callback: impl FnMut($crate::client::Notification) + Send + 'static) -> Self {
            self.options = self.options.on_notification(callback);
            self
        }

        /// A function that gets each line of the server's standard error, with `Stderr::Lines`. It runs on the driver and must not block.
        #[must_use]
        pub fn on_stderr(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
            self.options = self.options.on_stderr(callback);
            self
        }

        /// Records a tape: everything that is needed to play the session again. The function runs while the connection is locked: it must
        /// not call the client, and should be quick.
        #[must_use]
        pub fn tape(mut self, sink: impl FnMut($crate::client::TapeEntry<'_>) + Send + 'static) -> Self {
            self.options = self.options.tape(sink);
            self
        }

        /// Everything that will happen on the connection, from the start on.
        pub fn events(&mut self) -> $crate::client::Events {
            self.options.events()
        }
    };
}
