//! Several daemons on one PostgreSQL, each with a proxy of its own between the two.

use std::path::Path;
use std::time::Duration;

use a2ad_pgkit::proxy::Proxy;
use a2ad_pgkit::{Cluster, Durability};
use hyper::Method;
use tokio::time::{Instant, sleep, timeout};

use super::daemon::{Daemon, Place};
use super::load::Up;
use super::trial::Trial;
use crate::http;

/// How long an instance may take to be ready again after a fault is over.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The daemons and their database.
#[derive(Debug)]
pub struct Fleet {
    /// The server of the database.
    pub cluster: Cluster,
    database: String,
    instances: Vec<Instance>,
}

#[derive(Debug)]
struct Instance {
    place: Place,
    proxy: Proxy,
    daemon: Option<Daemon>,
    /// Where clients find it, while they should.
    up: Option<Up>,
}

/// How the agent of a fleet answers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The pause before each word.
    pub word: Duration,
    /// How many turns each instance runs at once.
    pub running: usize,
}

impl Pace {
    /// Slowly enough to be struck in the middle; more is asked than may run at once, so that turns
    /// also wait and are claimed.
    pub const LIVELY: Self = Self {
        word: Duration::from_millis(5),
        running: 6,
    };
}

/// Word by word; so many tries that no fault makes a task fail, and one soon after the other.
fn config(database_url: &str, lease: Duration, pace: Pace) -> String {
    format!(
        "\
log: {{level: warn}}
database_url: \"{database_url}\"
lease: {}ms
agents:
  - id: echo
    echo: {{words: true, delay: {}ms}}
    limits: {{running: {}, attempts: 100000, backoff: 20ms}}
",
        lease.as_millis(),
        pace.word.as_millis(),
        pace.running,
    )
}

impl Fleet {
    /// Starts a database, and makes places for `count` daemons; none of them runs yet.
    ///
    /// # Panics
    /// When the machine does not do its part.
    pub async fn prepare(
        binary: &Path,
        folder: &Path,
        count: usize,
        lease: Duration,
        pace: Pace,
    ) -> Self {
        let cluster = tokio::task::block_in_place(|| Cluster::start(Durability::Full));
        let database = cluster.create_database();
        let mut instances = Vec::new();
        for number in 1..=count {
            let proxy = Proxy::start(cluster.port()).await;
            let place = Place::new(binary, &folder.join(format!("instance-{number}")));
            let prepared = place.prepare(&config(&proxy.url(&database), lease, pace));
            prepared.expect("the folder can be written");
            instances.push(Instance {
                place,
                proxy,
                daemon: None,
                up: None,
            });
        }
        Self {
            cluster,
            database,
            instances,
        }
    }

    /// How many instances there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.instances.len()
    }

    /// The database, without a proxy in between.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url(&self.database)
    }

    /// What stands between an instance and the database.
    #[must_use]
    pub fn proxy(&self, at: usize) -> &Proxy {
        &self.instances[at].proxy
    }

    /// Where an instance is, while clients should go there.
    #[must_use]
    pub fn up(&self, at: usize) -> Option<Up> {
        self.instances[at].up
    }

    /// Starts an instance; it may not listen yet.
    ///
    /// # Errors
    /// When the binary cannot be run.
    pub fn start(&mut self, at: usize, trial: &mut Trial) -> Result<(), String> {
        trial.lives += 1;
        let instance = &mut self.instances[at];
        let daemon = Daemon::start(&instance.place, &format!("life {}", trial.lives));
        instance.daemon = Some(daemon.map_err(|error| format!("cannot be started: {error}"))?);
        Ok(())
    }

    /// Waits until an instance that was started is ready.
    ///
    /// # Errors
    /// When it does not become so; what it printed.
    pub async fn ready(&mut self, at: usize, trial: &mut Trial) -> Result<(), String> {
        let instance = &mut self.instances[at];
        let daemon = instance.daemon.as_mut().ok_or("it was not started")?;
        let (to, took) = daemon.ready().await?;
        trial.ready_after(took);
        instance.up = Some(Up {
            to,
            since: Instant::now(),
            life: trial.lives,
        });
        Ok(())
    }

    /// Tells the clients which instances are up.
    pub fn announce(&self, trial: &Trial) {
        let up = self.instances.iter().filter_map(|instance| instance.up);
        trial.servers.send_replace(up.collect());
    }

    /// Clients should not go there now. Returns where it was.
    pub fn withdraw(&mut self, at: usize, trial: &Trial) -> Option<Up> {
        let up = self.instances[at].up.take();
        self.announce(trial);
        up
    }

    /// `kill -9` of an instance.
    ///
    /// # Errors
    /// When it had ended by itself before.
    pub async fn kill(&mut self, at: usize, trial: &mut Trial) -> Result<(), String> {
        let daemon = self.instances[at].daemon.take();
        let killed = daemon.ok_or("it was not started")?.kill().await;
        self.withdraw(at, trial);
        killed?;
        trial.killed(&format!("instance {at}"));
        Ok(())
    }

    /// Sends an instance a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn signal(&self, at: usize, name: &str) -> Result<(), String> {
        let daemon = self.instances[at].daemon.as_ref();
        daemon.ok_or("it was not started")?.signal(name).await
    }

    /// Stops an instance in good order.
    ///
    /// # Errors
    /// When it does not end in time, or not well.
    pub async fn stop(&mut self, at: usize, patience: Duration) -> Result<(), String> {
        let instance = &mut self.instances[at];
        instance.up = None;
        let daemon = instance.daemon.take().ok_or("it was not started")?;
        daemon.stop(patience).await
    }

    /// Waits until an instance says that it is ready (again), then has clients go there.
    ///
    /// # Errors
    /// When it does not say so.
    pub async fn restore(&mut self, at: usize, up: Up, trial: &Trial) -> Result<(), String> {
        let from = Instant::now();
        while !is_ready(up).await {
            if from.elapsed() > READY_MAX {
                return Err(format!("instance {at} does not become ready again"));
            }
            sleep(LOOK_EVERY).await;
        }
        self.instances[at].up = Some(up);
        self.announce(trial);
        Ok(())
    }

    /// Waits until all instances that clients go to are ready; how long that took.
    ///
    /// # Errors
    /// When one is not.
    pub async fn all_ready(&mut self, trial: &Trial) -> Result<Duration, String> {
        let from = Instant::now();
        for at in 0..self.count() {
            if let Some(up) = self.up(at) {
                self.restore(at, up, trial).await?;
            }
        }
        Ok(from.elapsed())
    }

    /// Stops all instances in good order.
    ///
    /// # Errors
    /// The first that did not end in time or not well.
    pub async fn stop_all(&mut self, patience: Duration) -> Result<(), String> {
        let mut ended = Ok(());
        for at in 0..self.count() {
            if self.instances[at].daemon.is_some() {
                let stopped = self.stop(at, patience).await;
                ended = ended.and(stopped.map_err(|error| format!("instance {at}: {error}")));
            }
        }
        ended
    }
}

async fn is_ready(up: Up) -> bool {
    let asked = http::call(up.to, Method::GET, "/readyz", &[], "");
    let answer = timeout(Duration::from_secs(5), asked).await;
    matches!(answer, Ok(Ok(answer)) if answer.status.is_success())
}
