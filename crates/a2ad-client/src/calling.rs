//! How an operation is carried out: at which interface, and how often.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use a2ad_proto::{ErrorKind, SendMessageRequest};

use crate::builder::Builder;
use crate::client::Client;
use crate::dial::Limits;
use crate::error::Error;
use crate::interface::Binding;
use crate::settings::random;
use crate::setup::State;
use crate::transport::{Answer, Call, CallOptions, Frames, Operation, Question, Reply, Transport};

/// When a call may be made again although the agent may have got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Asking twice is asking once.
    Always,
    /// Never.
    Unsent,
}

/// An answer or a stream of them.
pub(crate) enum Outcome {
    Reply(Reply),
    Frames(Box<Frames>),
}

impl Client {
    /// Whether the message does no harm if it comes twice.
    pub(crate) fn is_repeatable(
        &self,
        request: &SendMessageRequest,
        options: &CallOptions,
    ) -> bool {
        let id = request.message.as_ref().map(|message| &*message.message_id);
        let has_key = options.idempotency_key.is_some();
        self.state().replay && (has_key || id.is_some_and(random::is_unique))
    }

    pub(crate) fn state(&self) -> Arc<State> {
        let state = self.inner.state.lock();
        Arc::clone(&state.unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn settings(&self) -> &Builder {
        &self.inner.setup.settings
    }

    /// What an answer says; if it says nothing sensible, without what it may say of our credentials.
    pub(crate) fn read<T: Answer>(&self, reply: &Reply, what: &str) -> Result<T, Error> {
        reply.read(what).map_err(|error| self.conceal(error))
    }

    pub(crate) fn conceal(&self, error: Error) -> Error {
        error.map_text(|text| self.settings().credentials.conceal(text))
    }

    pub(crate) fn timeouts(&self) -> &crate::Timeouts {
        &self.settings().timeouts
    }

    pub(crate) async fn ask<R: Question, T: Answer>(
        &self,
        operation: Operation,
        request: &R,
        what: &str,
    ) -> Result<T, Error> {
        self.ask_counted(operation, request, what).await.0
    }

    /// The same, and whether it was asked more than once.
    pub(crate) async fn ask_counted<R: Question, T: Answer>(
        &self,
        operation: Operation,
        request: &R,
        what: &str,
    ) -> (Result<T, Error>, bool) {
        let (options, limit) = (CallOptions::default(), self.timeouts().call);
        let mut tries = 0;
        let reply = self.counted(
            operation,
            request,
            &options,
            limit,
            Repeat::Always,
            &mut tries,
        );
        let read = reply.await.and_then(|reply| self.read(&reply, what));
        (read, tries > 1)
    }

    pub(crate) async fn call<R: Question>(
        &self,
        operation: Operation,
        request: &R,
        options: &CallOptions,
        limit: Duration,
        repeat: Repeat,
    ) -> Result<Reply, Error> {
        let mut tries = 0;
        self.counted(operation, request, options, limit, repeat, &mut tries)
            .await
    }

    async fn counted<R: Question>(
        &self,
        operation: Operation,
        request: &R,
        options: &CallOptions,
        limit: Duration,
        repeat: Repeat,
        tries: &mut u32,
    ) -> Result<Reply, Error> {
        let retries = &self.settings().retries;
        let limits = self.limits(limit);
        loop {
            *tries += 1;
            let error = match self.once(operation, request, None, options, &limits).await {
                Ok(Outcome::Reply(reply)) => return Ok(reply),
                Ok(Outcome::Frames(_)) => return Err(Error::not_a2a("a stream", "")),
                Err(error) => error,
            };
            let harmless = error.is_unheard() || repeat == Repeat::Always;
            if !(harmless && error.is_transient()) || *tries > retries.calls {
                return Err(error);
            }
            let delay = retries.delay(*tries, Some(&error));
            tracing::debug!(operation = operation.name(), %error, ?delay, "trying again");
            self.unless_canceled(async {
                tokio::time::sleep(delay).await;
                Ok(())
            })
            .await?;
        }
    }

    pub(crate) fn limits(&self, limit: Duration) -> Limits {
        Limits {
            connect: self.timeouts().connect,
            head: limit,
            silence: limit,
            total: Some(limit),
            answer_bytes_max: self.settings().sizes.answer_bytes,
        }
    }

    pub(crate) async fn open<R: Question>(
        &self,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
    ) -> Result<Frames, Error> {
        let silence = self.timeouts().silence;
        let limits = Limits {
            connect: self.timeouts().connect,
            head: options.timeout.unwrap_or(silence),
            ..Limits::stream(silence)
        };
        match self
            .once(operation, request, after, options, &limits)
            .await?
        {
            Outcome::Frames(frames) => Ok(*frames),
            Outcome::Reply(_) => Err(Error::not_a2a("no stream", "")),
        }
    }

    /// Makes a call at the interface that worked last, or, if that cannot have heard it, at the next.
    pub(crate) async fn once<R: Question>(
        &self,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
        limits: &Limits,
    ) -> Result<Outcome, Error> {
        let state = self.state();
        let first = state.current();
        let count = state.transports.len();
        let mut last = None;
        for index in (0..count).map(|step| (first + step) % count) {
            let transport = &*state.transports[index];
            let made = self.once_at(transport, operation, request, after, options, limits);
            match made.await {
                Ok(outcome) => {
                    let was_v03 = state.transports[first].interface().is_v03();
                    if transport.interface().is_v03() && !was_v03 {
                        tracing::warn!("the agent is spoken to in protocol 0.3 from now on");
                    }
                    state.current.store(index, Ordering::Relaxed);
                    return Ok(outcome);
                }
                Err(error) => {
                    // A version that is not served was not acted on either (DUAL-10).
                    let elsewhere =
                        error.is_unsent() || error.kind() == Some(ErrorKind::VersionNotSupported);
                    let invalid = matches!(error, Error::Invalid { .. });
                    if !elsewhere || invalid {
                        return Err(error);
                    }
                    let binding = transport.interface().binding;
                    tracing::debug!(%binding, %error, "an interface cannot be used");
                    // The preferred interface's failure says most, unless it merely was not the right one.
                    last.get_or_insert(error);
                }
            }
        }
        Err(last.unwrap_or(Error::Canceled))
    }

    async fn once_at<R: Question>(
        &self,
        transport: &dyn Transport,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
        limits: &Limits,
    ) -> Result<Outcome, Error> {
        let interface = transport.interface();
        let mut request = request.clone();
        if request.tenant().is_empty() {
            request.tenant().clone_from(&interface.tenant);
        }
        let tenant = request.tenant().clone();
        if interface.is_v03() && !tenant.is_empty() {
            return Err(Error::invalid("a tenant at an interface of protocol 0.3"));
        }
        if interface.binding == Binding::HttpJson {
            request.tenant().clear();
        }
        let call = Call {
            operation,
            params: &request,
            tenant: &tenant,
            after,
            options,
            limits: limits.clone(),
        };
        let streams = matches!(
            operation,
            Operation::SendStreamingMessage | Operation::SubscribeToTask
        );
        let is_old = interface.is_v03();
        let made = self.unless_canceled(async {
            if streams {
                let frames = transport.open(call).await?;
                Ok(Outcome::Frames(Box::new(frames)))
            } else {
                transport.call(call).await.map(Outcome::Reply)
            }
        });
        let made = made.await;
        made.map_err(|error| match error {
            Error::Refused(refusal) if is_old => Error::refused(refusal.of_old(operation)),
            error => error,
        })
    }

    pub(crate) async fn unless_canceled<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.settings().cancel.cancelled() => Err(Error::Canceled),
            done = work => done,
        }
    }
}
