//! From a configuration to a running server.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use a2ad_backends::{EchoAgent, ScriptAgent};
use a2ad_core::agent::Agent;
use a2ad_core::engine::{AgentSpec, Engine, EngineOptions, Hub, Retention};
use a2ad_proto::{AgentCard, AgentId};
use a2ad_transport::auth::Auth;
use a2ad_transport::{Address, Edge, Exposed, Grpc, IpNet};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::announce::announce;
use crate::auth;
use crate::card;
use crate::config::{AgentConfig, Backend, Config, Listen, Policy};
use crate::database::Opened;
use crate::error::{RunError, StartError};
use crate::meter::{Recorder, UPKEEP};
use crate::tokens::Tokens;
use crate::transcripts::{Folder, write_transcripts};

/// How long CancelTask waits for an agent to stop before it answers.
const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// How often tasks are looked at that have been kept long enough.
const RETENTION_EVERY: Duration = Duration::from_secs(60);
/// How long connections may take to finish once nothing runs any more.
const CONNECTIONS_DRAIN: Duration = Duration::from_secs(2);
/// How long everything is still answered once nothing runs any more, if others go on: whoever was on a stream that ends
/// with us asks again at once, maybe on a connection that he has kept for long.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long the engine may take to let go when its store is gone.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that is not running yet.
#[derive(Clone, Debug)]
pub struct Server {
    config: Config,
    brought: Vec<(AgentConfig, Arc<dyn Agent>)>,
}

impl Server {
    /// A server as configured.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            brought: Vec::new(),
        }
    }

    /// Serves an agent of the embedding program beside the configured ones; clear
    /// [`Config::agents`] to serve it alone. The back end in its configuration is ignored.
    #[must_use]
    pub fn agent(mut self, config: AgentConfig, agent: Arc<dyn Agent>) -> Self {
        self.brought.push((config, agent));
        self
    }

    /// Starts the configured server: `Server::new(config).run()`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn start(config: Config) -> Result<Handle, StartError> {
        Self::new(config).run().await
    }

    /// Says whether the agents can be served, without touching anything.
    ///
    /// # Errors
    /// If there is none for clients, two have the same id, an id is reserved, one has no back end, or a card cannot
    /// be read.
    pub fn check(&self) -> Result<(), StartError> {
        let tokens = Tokens::in_folder(&self.config.data_dir);
        let (auth, _watch) = auth::auth(&self.config.auth, tokens)?;
        self.agents(&auth).map(drop)
    }

    /// Listens, opens the database, takes up what an earlier run left behind, and serves.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    pub async fn run(self) -> Result<Handle, StartError> {
        let tokens = Tokens::in_folder(&self.config.data_dir);
        let (auth, watch) = auth::auth(&self.config.auth, tokens)?;
        let agents = self.agents(&auth)?;
        let config = self.config;
        let place = Place::find(&config.listen, "--port").await?;
        let grpc = match &config.grpc_listen {
            Some(listen) => Some(Place::find(listen, "--grpc-listen").await?),
            None => None,
        };
        let mut places = std::iter::once(&place).chain(&grpc);
        if !auth.required
            && let Some(open) = places.find(|place| place.is_open_to_others())
        {
            let address = open.listen.to_string();
            if !config.auth.allow_unauthenticated {
                return Err(StartError::Unauthenticated(address));
            }
            tracing::warn!(
                "whoever can reach {address} can use the agents: there is no authentication"
            );
        }
        let authenticates = auth.required;
        let auth = Arc::new(auth);
        let recorder = Recorder::get();
        // First, so that a mistaken second start ends before it touches the database.
        let (listener, addr) = place.bind().await?;
        let grpc = match grpc {
            Some(place) => Some(place.bind().await?),
            None => None,
        };
        let url = base_url(&config, addr);
        let grpc_at = grpc_at(&config, grpc.as_ref().map(|(_, addr)| *addr));
        let address = Address::new(&url, grpc_at).ok_or(StartError::PublicUrl)?;
        let transcripts = transcripts(&config)?;
        let hub = Hub::new();
        let database = Opened::open(&config, Arc::clone(&hub)).await?;
        let surroundings = database.surroundings();
        let since = Duration::from_millis(surroundings.clock.now().as_millis().unsigned_abs());
        let options = EngineOptions {
            agents: agents.iter().map(|it| it.spec(&config.policy)).collect(),
            retention: Retention {
                terminal: config.retention.terminal,
                interrupted: config.retention.interrupted,
                every: RETENTION_EVERY,
            },
            cancel_wait: CANCEL_WAIT,
            surroundings,
        };
        let engine = Engine::start(options, database.store(), hub).await?;
        let exposed: Vec<Exposed> = agents.into_iter().filter_map(Chosen::exposed).collect();
        let ids: Vec<AgentId> = exposed.iter().map(|agent| agent.id.clone()).collect();
        let draining = CancellationToken::new();
        let stop = CancellationToken::new();
        let app = Edge {
            engine: engine.clone(),
            agents: exposed,
            address,
            since: SystemTime::UNIX_EPOCH + since,
            auth: Arc::clone(&auth),
            trusted_proxies: trusted(&config),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            metrics: recorder.render(),
            limits: limits(&config),
            lenient: config.protocol.lenient,
            file_bytes: config.protocol.v03_files.into(),
            draining: draining.clone(),
        }
        .into_app();

        let running = Running {
            engine,
            transcripts,
            database,
            recorder,
            draining: draining.clone(),
            stop: stop.clone(),
            patience: config.drain,
        };
        announce(addr, &url, &ids, &auth);
        let watching = auth::watch(watch, auth);
        let mut tasks = JoinSet::new();
        let (grpc, grpc_addr) = grpc.unzip();
        let grpc = grpc.map(|listener| (listener, app.only_grpc()));
        let listeners = std::iter::once((listener, app)).chain(grpc).collect();
        tasks.spawn(running.supervise(listeners, watching));
        Ok(Handle {
            addr,
            grpc_addr,
            agents: ids,
            authenticates,
            url,
            draining,
            stop,
            tasks,
        })
    }

    fn agents(&self, auth: &Auth) -> Result<Vec<Chosen>, StartError> {
        let same = |grpc: &&Listen| **grpc == self.config.listen && grpc.port != 0;
        if let Some(grpc) = self.config.grpc_listen.as_ref().filter(same) {
            return Err(StartError::SameAddress(grpc.to_string()));
        }
        let mut all = self.brought.clone();
        for agent in &self.config.agents {
            let backend: Arc<dyn Agent> = match &agent.backend {
                Some(Backend::Echo(echo)) => Arc::new(EchoAgent::new(echo)),
                Some(Backend::Script(script)) => Arc::new(ScriptAgent::new(script.clone())),
                None => return Err(StartError::NoBackend(agent.id.clone())),
            };
            all.push((agent.clone(), backend));
        }
        if all.is_empty() {
            return Err(StartError::NoAgents);
        }
        if all.iter().all(|(agent, _)| !agent.expose) {
            return Err(StartError::NoneExposed);
        }
        let mut ids = HashSet::new();
        let choose = |(config, backend): (AgentConfig, Arc<dyn Agent>)| {
            if a2ad_transport::is_reserved(config.id.as_str()) {
                return Err(StartError::ReservedAgent(config.id));
            }
            if !ids.insert(config.id.clone()) {
                return Err(StartError::DuplicateAgent(config.id));
            }
            let mut card = card::card(&config)?;
            auth::advertise(&self.config.auth, auth, &mut card);
            Ok(Chosen {
                config,
                backend,
                card,
            })
        };
        all.into_iter().map(choose).collect()
    }
}

/// An agent that can be served.
struct Chosen {
    config: AgentConfig,
    backend: Arc<dyn Agent>,
    card: AgentCard,
}

impl Chosen {
    fn spec(&self, all: &Policy) -> AgentSpec {
        let mut policy = self.config.for_engine(all);
        card::apply_modes(&self.card, &mut policy);
        AgentSpec {
            id: self.config.id.clone(),
            agent: Arc::clone(&self.backend),
            policy,
        }
    }

    fn exposed(self) -> Option<Exposed> {
        self.config.expose.then_some(Exposed {
            id: self.config.id,
            card: self.card,
        })
    }
}

/// A running server. Dropping it ends the server at once, as a crash would; [`stop`](Self::stop)
/// and [`wait`](Self::wait) end it in good order.
#[derive(Debug)]
pub struct Handle {
    addr: SocketAddr,
    grpc_addr: Option<SocketAddr>,
    agents: Vec<AgentId>,
    authenticates: bool,
    url: String,
    draining: CancellationToken,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), RunError>>,
}

impl Handle {
    /// The address that is listened on, with the port that was found for port 0.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address that is listened on for gRPC alone, if there is one.
    #[must_use]
    pub const fn grpc_addr(&self) -> Option<SocketAddr> {
        self.grpc_addr
    }

    /// The agents that clients can find, the first being the one that answers where none is named.
    #[must_use]
    pub fn agents(&self) -> &[AgentId] {
        &self.agents
    }

    /// Whether callers have to say who they are.
    #[must_use]
    pub const fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// The address for clients, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the card of the first agent is.
    #[must_use]
    pub fn card_url(&self) -> String {
        format!("{}/.well-known/agent-card.json", self.url)
    }

    /// Says that the end is near: readiness goes and connections are not kept, while everything
    /// still works. Balancers need a moment to notice before [`stop`](Self::stop).
    pub fn announce_stop(&self) {
        self.draining.cancel();
    }

    /// Begins to stop: no new work is taken, turns that run may finish for as long as `drain`
    /// says, the rest is handed back for the next start, streams end after a whole frame.
    /// [`wait`](Self::wait) resolves when that is done.
    pub fn stop(&self) {
        self.draining.cancel();
        self.stop.cancel();
    }

    /// Resolves when the server has ended. Cancel-safe.
    ///
    /// # Errors
    /// If it was not asked to end; see [`RunError`].
    pub async fn wait(&mut self) -> Result<(), RunError> {
        match self.tasks.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(RunError::Panicked),
            None => Ok(()),
        }
    }
}

/// What runs behind a [`Handle`].
struct Running {
    engine: Engine,
    /// Where conversations are written, if they are.
    transcripts: Option<Folder>,
    database: Opened,
    recorder: Recorder,
    draining: CancellationToken,
    stop: CancellationToken,
    patience: Duration,
}

impl Running {
    async fn supervise(
        self,
        listeners: Vec<(TcpListener, a2ad_transport::App)>,
        watching: impl Future<Output = ()>,
    ) -> Result<(), RunError> {
        let hang_up = CancellationToken::new();
        let serve = |(listener, app)| a2ad_transport::serve(listener, app, hang_up.clone());
        let edge = futures_util::future::join_all(listeners.into_iter().map(serve));
        let work = async {
            let end = self.until_the_end().await;
            self.draining.cancel();
            match &end {
                // Streams and blocked calls stay open while turns finish: they are what the
                // callers wait for.
                Ok(()) => {
                    self.engine.drain(self.patience).await;
                    if self.database.is_shared() {
                        tokio::time::sleep(LAST_CALLS.min(self.patience)).await;
                    }
                }
                Err(reason) => {
                    tracing::error!(reason = %reason, "the database stopped");
                    let drained = self.engine.drain(Duration::ZERO);
                    if tokio::time::timeout(FAREWELL, drained).await.is_err() {
                        tracing::warn!("turns did not end in time");
                    }
                }
            }
            hang_up.cancel();
            end
        };
        // It ends with the engine, and nobody waits for it before.
        let scribe = async {
            if let Some(folder) = self.transcripts.clone() {
                write_transcripts(self.engine.clone(), folder).await;
            }
        };
        let ended = async { tokio::join!(work, edge, scribe) };
        let (end, drained) = tokio::select! {
            (end, drained, ()) = ended => (end, drained),
            () = watching => return Err(RunError::Panicked),
        };
        if self.database.clone().close().await.is_err() {
            return Err(RunError::Panicked);
        }
        let cut: usize = drained.iter().map(|listener| listener.cut).sum();
        tracing::info!(connections_cut = cut, "stopped");
        end.map_err(RunError::StoreStopped)
    }

    /// Waits until somebody asks to stop, or the store gives up.
    async fn until_the_end(&self) -> Result<(), Arc<str>> {
        let mut upkeep = tokio::time::interval(UPKEEP);
        loop {
            tokio::select! {
                biased;
                reason = self.engine.stopped() => return Err(reason),
                () = self.stop.cancelled() => return Ok(()),
                _ = upkeep.tick() => self.recorder.tidy(),
            }
        }
    }
}

/// Where to listen. What a name stands for is asked once, so that what is judged is what is listened on.
pub(crate) struct Place<'a> {
    listen: &'a Listen,
    /// What chooses another address.
    flag: &'static str,
    found: Vec<SocketAddr>,
}

impl<'a> Place<'a> {
    pub(crate) async fn find(listen: &'a Listen, flag: &'static str) -> Result<Self, StartError> {
        let mut place = Self {
            listen,
            flag,
            found: Vec::new(),
        };
        let found = tokio::net::lookup_host((listen.host.as_str(), listen.port)).await;
        place.found = found.map_err(|error| place.refused(error))?.collect();
        Ok(place)
    }

    /// Whether others than this machine's users could come.
    pub(crate) fn is_open_to_others(&self) -> bool {
        self.found.iter().any(|addr| !addr.ip().is_loopback())
    }

    pub(crate) async fn bind(&self) -> Result<(TcpListener, SocketAddr), StartError> {
        let listener = TcpListener::bind(&self.found[..]).await;
        let listener = listener.map_err(|error| self.refused(error))?;
        let addr = listener.local_addr().map_err(|error| self.refused(error))?;
        Ok((listener, addr))
    }

    fn refused(&self, source: std::io::Error) -> StartError {
        let flag = self.flag;
        StartError::Bind {
            address: self.listen.to_string(),
            advice: match source.kind() {
                std::io::ErrorKind::AddrInUse => {
                    format!("stop the program that has it, or choose another with {flag}")
                }
                std::io::ErrorKind::PermissionDenied => {
                    format!("choose a port from 1024 on with {flag}")
                }
                _ => "check the address".to_owned(),
            },
            source,
        }
    }
}

/// Where clients reach gRPC. A port of its own is at its own address, unless that is every address or there is a
/// better name for the machine.
fn grpc_at(config: &Config, own: Option<SocketAddr>) -> Grpc {
    match (&config.grpc_public_address, own) {
        (Some(address), _) => Grpc::At(address.to_string()),
        (None, Some(own)) if config.public_url.is_none() && !own.ip().is_unspecified() => {
            Grpc::At(own.to_string())
        }
        (None, Some(own)) => Grpc::Port(own.port()),
        (None, None) => Grpc::Here,
    }
}

/// The folder for transcripts, if there are to be any.
fn transcripts(config: &Config) -> Result<Option<Folder>, StartError> {
    let Some(dir) = &config.transcripts.dir else {
        return Ok(None);
    };
    let path = config.data_dir.join(dir);
    let opened = std::fs::canonicalize(".").and_then(|here| Folder::open(&path, &here));
    match opened {
        Ok(folder) => Ok(Some(folder)),
        Err(source) => Err(StartError::Transcripts { path, source }),
    }
}

fn trusted(config: &Config) -> Vec<IpNet> {
    if config.public_url.is_some() && !config.trusted_proxies.is_empty() {
        tracing::warn!("`public_url` is what cards show, so `trusted_proxies` changes nothing");
        return Vec::new();
    }
    config.trusted_proxies.clone()
}

/// The address for clients when nothing better is configured.
fn base_url(config: &Config, addr: SocketAddr) -> String {
    match &config.public_url {
        Some(url) => url.as_str().to_owned(),
        // Listening everywhere is no address to call.
        None if addr.ip().is_unspecified() => format!("http://localhost:{}", addr.port()),
        None => format!("http://{addr}"),
    }
}

fn limits(config: &Config) -> a2ad_transport::Limits {
    let limits = &config.limits;
    a2ad_transport::Limits {
        connections_max: limits.connections as usize,
        body_bytes_max: usize::try_from(limits.body).unwrap_or(usize::MAX),
        keep_alive: limits.idle,
        stall: limits.stall,
        sse_keep_alive: limits.keep_alive,
        drain: CONNECTIONS_DRAIN,
        ..a2ad_transport::Limits::default()
    }
}
