//! What a client is made of: what its user said, and what follows from the card.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use a2ad_proto::v03::Dialect;
use url::Url;

use crate::REPLAY;
use crate::builder::Builder;
use crate::card::FoundCard;
use crate::client::{Client, Inner};
use crate::credentials::Shown;
use crate::dial::{Dialer, Limits};
use crate::error::Error;
use crate::interface::Interface;
use crate::refusal::clip;
use crate::transport::{Line, Transport, Wire, transport};

/// What the caller said.
pub(crate) struct Setup {
    pub(crate) settings: Builder,
    pub(crate) base: Url,
}

/// What follows from the card.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) found: FoundCard,
    /// Those that can be used, preferred first; never empty.
    pub(crate) transports: Vec<Arc<dyn Transport>>,
    /// The one that worked last.
    pub(crate) current: AtomicUsize,
    /// Whether the agent numbers its frames and recognises messages that come again.
    pub(crate) replay: bool,
    pub(crate) streaming: bool,
}

impl State {
    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }
}

impl Setup {
    pub(crate) fn new(settings: Builder, base: Url) -> Self {
        Self { settings, base }
    }

    pub(crate) fn into_client(self, found: FoundCard) -> Result<Client, Error> {
        let state = Mutex::new(Arc::new(self.state_of(found)?));
        Ok(Client {
            inner: Arc::new(Inner { setup: self, state }),
        })
    }

    fn dialer(&self, trusted: bool) -> Result<Dialer, Error> {
        let settings = &self.settings;
        let trusted = settings.trusted_dialer.as_ref().filter(|_| trusted);
        let dialer = trusted.or(settings.dialer.as_ref()).cloned();
        dialer.ok_or(Error::invalid("a client without a dialer"))
    }

    pub(crate) async fn find_card(&self) -> Result<FoundCard, Error> {
        let settings = &self.settings;
        let dialer = self.dialer(true)?;
        let call = settings.timeouts.call;
        let limits = Limits {
            connect: settings.timeouts.connect,
            head: call,
            silence: call,
            total: Some(call),
            ..Limits::default()
        };
        let find = settings
            .cards
            .find(&dialer, &self.base, &settings.credentials, &limits);
        tokio::select! {
            biased;
            () = settings.cancel.cancelled() => Err(Error::Canceled),
            found = find => found.map_err(|error| self.conceal(error)),
        }
    }

    fn conceal(&self, error: Error) -> Error {
        error.map_text(|text| self.settings.credentials.conceal(text))
    }

    pub(crate) fn state_of(&self, found: FoundCard) -> Result<State, Error> {
        self.read(found).map_err(|error| self.conceal(error))
    }

    fn read(&self, found: FoundCard) -> Result<State, Error> {
        let settings = &self.settings;
        let card = &found.card;
        let interfaces = settings.choice.interfaces(card, &found.url)?;
        let declared = &card.capabilities.extensions;
        let replay = declared.iter().any(|extension| extension.uri == REPLAY);
        let nothing = Shown {
            headers: http::HeaderMap::new(),
            query: Vec::new(),
        };
        if interfaces.first().is_some_and(Interface::is_v03) {
            tracing::info!(agent = %clip(&card.name), "the agent is spoken to in protocol 0.3");
        }
        let mut transports = Vec::new();
        for interface in interfaces {
            let shown = if interface.trusted {
                settings.credentials.show(card)?
            } else {
                if !settings.credentials.is_empty() {
                    let host = interface.url.host_str().unwrap_or_default();
                    let binding = interface.binding;
                    tracing::warn!(%binding, host, "an interface at another origin gets no credentials");
                }
                nothing.clone()
            };
            let wire = match (interface.is_v03(), settings.plain_files) {
                (false, _) => Wire::Modern,
                (true, false) => Wire::Old(Dialect::Proto),
                (true, true) => Wire::Old(Dialect::ProtoPlain),
            };
            transports.push(transport(Line {
                wire,
                dialer: self.dialer(interface.trusted)?,
                interface,
                shown,
                credentials: settings.credentials.clone(),
                extensions: settings.extensions.clone(),
                replay,
                event_bytes_max: settings.sizes.event_bytes,
            }));
        }
        Ok(State {
            streaming: card.capabilities.streaming == Some(true),
            found,
            transports,
            current: AtomicUsize::new(0),
            replay,
        })
    }
}
