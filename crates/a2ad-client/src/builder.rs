//! What a client is made from.

use std::fmt;
use std::sync::Arc;

use a2ad_proto::AgentCard;
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use crate::card::{Cards, FoundCard};
use crate::client::Client;
use crate::credentials::Credentials;
use crate::dial::{Dialer, Rules};
use crate::error::Error;
use crate::interface::{Binding, Choice};
use crate::settings::{Retries, Sizes, Timeouts};
use crate::setup::Setup;

/// Makes a [`Client`].
///
/// ```no_run
/// # async fn run() -> Result<(), a2ad_client::Error> {
/// use a2ad_client::{Binding, Client, Credentials};
/// let client = Client::builder("https://agent.example")
///     .credentials(Credentials::default().bearer("t0ken"))
///     .binding(Binding::Grpc)
///     .connect()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Builder {
    pub(crate) url: String,
    pub(crate) dialer: Option<Dialer>,
    pub(crate) trusted_dialer: Option<Dialer>,
    pub(crate) credentials: Credentials,
    pub(crate) choice: Choice,
    pub(crate) plain_files: bool,
    pub(crate) origins: Vec<String>,
    pub(crate) extensions: Vec<String>,
    pub(crate) timeouts: Timeouts,
    pub(crate) sizes: Sizes,
    pub(crate) retries: Retries,
    pub(crate) cards: Arc<Cards>,
    pub(crate) cancel: CancellationToken,
}

/// Without the URL, in which there may be a key.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("credentials", &self.credentials)
            .field("timeouts", &self.timeouts)
            .field("sizes", &self.sizes)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            dialer: None,
            trusted_dialer: None,
            credentials: Credentials::default(),
            choice: Choice::default(),
            plain_files: false,
            origins: Vec::new(),
            extensions: Vec::new(),
            timeouts: Timeouts::default(),
            sizes: Sizes::default(),
            retries: Retries::default(),
            cards: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Goes out by this dialer. The default one reaches the host given, whatever it is, and beside it public hosts
    /// only; if the host given is an address of this machine or a private one, private ones too.
    #[must_use]
    pub fn dialer(mut self, dialer: Dialer) -> Self {
        self.dialer = Some(dialer);
        self
    }

    /// Goes out by this dialer where our credentials may be seen, and only there: the place of a client certificate.
    #[must_use]
    pub fn trusted_dialer(mut self, dialer: Dialer) -> Self {
        self.trusted_dialer = Some(dialer);
        self
    }

    /// Shows these to the agent: at the origin of its card, and those of [`Self::allow_origin`].
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Lets an interface at this origin (scheme, host and port) see our credentials, and lets it be plain `http`.
    #[must_use]
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.origins.push(origin.to_owned());
        self
    }

    /// Uses this binding and no other.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.choice.binding = Some(binding);
        self
    }

    /// Uses this version of the protocol and no other, such as `1.0`.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.choice.version = Some(version.to_owned());
        self
    }

    /// Does not speak protocol 0.3, even if the agent knows nothing newer (DUAL-10). Otherwise such agents are spoken to
    /// as if they were of 1.0, and [`Client::interface`] tells which they are.
    #[must_use]
    pub fn without_v03(mut self) -> Self {
        self.choice.without_v03 = true;
        self
    }

    /// Puts the bytes of files as they are into messages of protocol 0.3 over HTTP+JSON and gRPC, and takes them so. Most
    /// agents have their base64 text there, which is the default (V03-16).
    #[must_use]
    pub fn plain_v03_files(mut self) -> Self {
        self.plain_files = true;
        self
    }

    /// Switches an extension on for every call (EXT-02).
    #[must_use]
    pub fn extension(mut self, uri: &str) -> Self {
        self.extensions.push(uri.to_owned());
        self
    }

    /// How long things may take.
    #[must_use]
    pub fn timeouts(mut self, change: impl FnOnce(&mut Timeouts)) -> Self {
        change(&mut self.timeouts);
        self
    }

    /// How large things may be.
    #[must_use]
    pub fn sizes(mut self, change: impl FnOnce(&mut Sizes)) -> Self {
        change(&mut self.sizes);
        self
    }

    /// How often to try again.
    #[must_use]
    pub fn retries(mut self, change: impl FnOnce(&mut Retries)) -> Self {
        change(&mut self.retries);
        self
    }

    /// Keeps cards here, together with other clients.
    #[must_use]
    pub fn cards(mut self, cards: Arc<Cards>) -> Self {
        self.cards = cards;
        self
    }

    /// Gives up all calls and streams when this is canceled. A single one is given up by dropping it.
    #[must_use]
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// Finds the agent's card and chooses an interface.
    ///
    /// # Errors
    /// When there is no card, or none of its interfaces can be used.
    pub async fn connect(mut self) -> Result<Client, Error> {
        let base = self.ready()?;
        let setup = Setup::new(self, base);
        let found = setup.find_card().await?;
        setup.into_client(found)
    }

    /// Uses a card that is known already, as if it had been found at the URL given.
    ///
    /// # Errors
    /// When none of its interfaces can be used.
    pub fn with_card(mut self, card: AgentCard) -> Result<Client, Error> {
        let base = self.ready()?;
        let found = FoundCard {
            card: Arc::new(card),
            url: base.clone(),
        };
        Setup::new(self, base).into_client(found)
    }

    fn ready(&mut self) -> Result<Url, Error> {
        let base = Url::parse(&self.url).map_err(|_| Error::invalid("the agent's URL"))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(Error::invalid("the agent's URL"));
        }
        for origin in &self.origins {
            let origin = Url::parse(origin).map_err(|_| Error::invalid("an allowed origin"))?;
            self.choice.origins.push(origin.origin());
        }
        if self.dialer.is_none() {
            self.dialer = Some(default_dialer(&base)?);
        }
        Ok(base)
    }
}

/// The user named this host; the others are named by its card.
fn default_dialer(base: &Url) -> Result<Dialer, Error> {
    let is_private = match base.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    let endpoint = base.host_str().map(str::to_owned);
    let rules = Rules {
        allow_private: is_private,
        endpoints: endpoint
            .zip(base.port_or_known_default())
            .into_iter()
            .collect(),
        ..Rules::default()
    };
    Dialer::guarded(rules).map_err(|_| Error::invalid("the agent's host"))
}
