//! The real server on a free port with a data directory of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_pgkit::Cluster;
use a2ad_proto::{GetTaskRequest, Part, Task};
use a2ad_server::config::{AgentConfig, Config, Database, Policy, Source};
use a2ad_server::{Handle, Server};
use tempfile::TempDir;

use crate::agents::{Obedient, obedient};
use crate::client::{Client, Driven};

pub use a2ad_client::Binding;

/// Where the scenario's server keeps its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// An embedded SQLite file.
    Sqlite,
    /// A PostgreSQL database.
    Postgres,
}

/// How long a condition may take to come true. Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long turns may go on when the server stops.
const DRAIN: Duration = Duration::from_millis(200);

/// A running server, an agent that obeys, and a client.
pub struct Harness {
    /// The client.
    pub client: Box<dyn Client>,
    /// The agent behind the server.
    pub agent: Arc<Obedient>,
    binding: Binding,
    handle: Handle,
    folder: TempDir,
    database: Option<Database>,
    policy: Policy,
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Harness({})", self.handle.addr())
    }
}

impl Harness {
    /// Starts a server with an empty store.
    pub async fn start(binding: Binding, store: StoreKind) -> Self {
        let database = match store {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => {
                let url = tokio::task::spawn_blocking(|| Cluster::shared().create()).await;
                Some(url.expect("a database"))
            }
        };
        Self::start_on(binding, database.as_deref()).await
    }

    /// Starts a server on the database at this address, or on an empty file.
    ///
    /// # Panics
    /// When that is no address.
    pub async fn start_on(binding: Binding, database: Option<&str>) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let agent = obedient();
        let database = database.map(|url| url.parse().expect("the address of a database"));
        let policy = Policy::default();
        let handle = serve(&folder, database.as_ref(), &agent, DRAIN, &policy).await;
        Self {
            client: Box::new(Driven::connect(handle.addr(), binding).await),
            agent,
            binding,
            handle,
            folder,
            database,
            policy,
        }
    }

    /// Starts a further instance on the same database, with an agent of its own.
    ///
    /// # Panics
    /// If the store cannot be shared.
    pub async fn another(&self, binding: Binding) -> Self {
        self.another_with(binding, DRAIN).await
    }

    /// The same, with so much patience when it stops.
    pub async fn another_with(&self, binding: Binding, drain: Duration) -> Self {
        assert!(self.database.is_some(), "a file has one server");
        let folder = TempDir::new().expect("a temporary folder");
        let agent = obedient();
        let policy = self.policy.clone();
        let handle = serve(&folder, self.database.as_ref(), &agent, drain, &policy).await;
        Self {
            client: Box::new(Driven::connect(handle.addr(), binding).await),
            agent,
            binding,
            handle,
            folder,
            database: self.database.clone(),
            policy,
        }
    }

    /// Where the server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.handle.addr()
    }

    /// How the client speaks.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// Announces that the server will end.
    pub fn announce_stop(&self) {
        self.handle.announce_stop();
    }

    /// Starts the server again, with a policy for its agent, as it is written in a configuration.
    ///
    /// # Panics
    /// When that is no policy.
    pub async fn adopt(&mut self, policy: &str) {
        let text = format!("policy: {policy}\nagents: [{{id: any, echo: }}]");
        let config = Source::yaml("policy", text).read(&|_| None);
        self.policy = config.expect("a policy").policy;
        self.restart().await;
    }

    /// Ends the server in good order and starts it again on the same data.
    pub async fn restart(&mut self) {
        self.restart_after(|_| ()).await;
    }

    /// The same, with something done to the database in between, if it is a SQLite file.
    pub async fn restart_after(&mut self, tamper: impl FnOnce(&Path)) {
        self.handle.stop();
        self.handle.wait().await.expect("the server stops");
        if self.database.is_none() {
            tamper(&self.folder.path().join("data").join("a2ad.db"));
        }
        let database = self.database.as_ref();
        self.handle = serve(&self.folder, database, &self.agent, DRAIN, &self.policy).await;
        self.client = Box::new(Driven::connect(self.handle.addr(), self.binding).await);
    }

    /// Begins to end the server in good order.
    pub fn handle_stop(&self) {
        self.handle.stop();
    }

    /// Ends the server in good order and gives its data.
    pub async fn stop(mut self) -> TempDir {
        self.handle.stop();
        self.handle.wait().await.expect("the server stops");
        self.folder
    }

    /// Asks for a task until it is as wanted.
    pub async fn until(&self, id: &str, wanted: impl Fn(&Task) -> bool) -> Task {
        let ask = async {
            loop {
                let request = GetTaskRequest {
                    id: id.to_owned(),
                    ..GetTaskRequest::default()
                };
                let task = self.client.get(request).await.expect("the task is there");
                if wanted(&task) {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ask)
            .await
            .unwrap_or_else(|_| panic!("task {id} never was as wanted"))
    }

    /// Waits until a task told `gate` stands at the gate.
    pub async fn wait_at_gate(&self, id: &str) {
        self.until(id, |task| {
            let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
            parts
                .filter_map(Part::as_text)
                .any(|said| said == "waiting ")
        })
        .await;
    }

    /// How many turns the agent began.
    #[must_use]
    pub fn agent_begun(&self) -> u32 {
        self.agent.begun.load(Ordering::SeqCst)
    }

    /// How many turns the agent worked on at once, at most.
    #[must_use]
    pub fn agent_most(&self) -> u32 {
        self.agent.most.load(Ordering::SeqCst)
    }
}

async fn serve(
    folder: &TempDir,
    database: Option<&Database>,
    agent: &Arc<Obedient>,
    drain: Duration,
    policy: &Policy,
) -> Handle {
    let mut config = Config::default();
    config.policy = policy.clone();
    if let Some(database) = database {
        config.database_url = database.clone();
    }
    config.listen = "127.0.0.1:0".parse().expect("an address");
    config.data_dir = folder.path().join("data");
    config.drain = drain;
    config.agents = Vec::new();
    let mut described = AgentConfig::new("obedient".parse().expect("an id"));
    described.limits.backoff = Duration::from_millis(5);
    described.limits.cancel_grace = Duration::from_millis(100);
    Server::new(config)
        .agent(described, Arc::<Obedient>::clone(agent))
        .run()
        .await
        .expect("the server starts")
}
