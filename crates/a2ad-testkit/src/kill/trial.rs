//! What all runs have in common: clients, what they were told, what checks have found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::checker::{Checker, Findings};
use super::daemon::OWNER;
use super::history::History;
use super::load::{self, Bears, Client, Shared, Up};
use super::report::{Figures, Report};

/// How many tasks are asked for at the end whose end is known already.
const ASK_AGAIN_MAX: usize = 20_000;
/// How many tasks are asked for at once.
const ASK_AT_ONCE: usize = 8;

/// Where data, history and logs of a run lie; kept if it was asked for, or if something is wrong.
#[derive(Debug)]
pub enum Folder {
    /// Somebody wants to have it.
    Given(PathBuf),
    /// Nobody does.
    Own(TempDir),
}

impl Folder {
    /// The folder that is asked for, or one of its own.
    ///
    /// # Panics
    /// When none can be made.
    #[must_use]
    pub fn new(given: Option<&Path>) -> Self {
        match given {
            Some(folder) => {
                std::fs::create_dir_all(folder).expect("a folder can be made");
                Self::Given(folder.to_owned())
            }
            None => Self::Own(tempfile::tempdir().expect("a folder can be made")),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Given(folder) => folder,
            Self::Own(folder) => folder.path(),
        }
    }

    /// Keeps it if the report says that there is something to see.
    #[must_use]
    pub fn keep_for(self, mut report: Report) -> Report {
        report.folder = match self {
            Self::Given(folder) => Some(folder),
            Self::Own(_) if report.is_clean() => None,
            Self::Own(folder) => Some(folder.keep()),
        };
        report
    }
}

/// Clients under way, what they were told, and what checks have found so far.
#[derive(Debug)]
pub struct Trial {
    /// Where clients find servers.
    pub servers: watch::Sender<Vec<Up>>,
    /// What the clients share.
    pub shared: Arc<Shared>,
    /// How many lives servers have had.
    pub lives: u32,
    /// What it will come to.
    pub report: Report,
    seed: u64,
    clients: JoinSet<()>,
    ready_ms: Vec<u64>,
    back_ms: Vec<u64>,
    rest_ms: Vec<u64>,
    /// What earlier checks found, and what went wrong with the servers themselves.
    before: Findings,
    began: Instant,
}

impl Trial {
    /// Nobody asks for anything yet.
    ///
    /// # Panics
    /// When the folder cannot be written.
    #[must_use]
    pub fn new(seed: u64, repeat: &str, folder: &Path, bears: Bears) -> Self {
        let (servers, watched) = watch::channel(Vec::new());
        let history = History::in_file(&folder.join("history.jsonl"));
        let history = history.expect("the history can be written");
        Self {
            servers,
            shared: Arc::new(Shared::new(watched, history, bears)),
            lives: 0,
            report: Report::new(seed, repeat),
            seed,
            clients: JoinSet::new(),
            ready_ms: Vec::new(),
            back_ms: Vec::new(),
            rest_ms: Vec::new(),
            before: Findings::default(),
            began: Instant::now(),
        }
    }

    /// Clients begin to ask.
    pub fn begin(&mut self, clients: usize, operations_max: usize, rest_max: Duration) {
        for number in 0..clients {
            let shared = Arc::clone(&self.shared);
            let client = Client::new(shared, self.seed, number, rest_max);
            self.clients.spawn(client.run(operations_max));
        }
    }

    /// A server came up so long after its start.
    pub fn ready_after(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.ready_ms.push(millis);
    }

    /// All servers were ready so long after their database was.
    pub fn back_after(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.back_ms.push(millis);
    }

    /// All work that was left after a fault was done so long after clients were asked to stop.
    fn rested_after(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.rest_ms.push(millis);
    }

    /// A server was killed.
    pub fn killed(&mut self, how: &str) {
        self.report.kills += 1;
        let kills = self.report.kills;
        let mut history = self.shared.history();
        history.note(|| serde_json::json!({"killed": kills, "moment": how}));
        history.flush();
    }

    /// Another fault than a kill happened.
    pub fn struck(&mut self, name: &'static str) {
        *self.report.faults.entry(name).or_default() += 1;
        let mut history = self.shared.history();
        history.note(|| serde_json::json!({"struck": name}));
        history.flush();
    }

    /// Lets the clients finish and all tasks come to their ends. If they do not, that is noted.
    pub async fn settle(&mut self, patience: Duration) {
        let from = Instant::now();
        self.shared.enough.cancel();
        let finish = async {
            while let Some(done) = self.clients.join_next().await {
                if let Err(error) = done {
                    let surprise = format!("a client broke off: {error}");
                    self.shared.history().surprise(surprise);
                }
            }
        };
        if timeout(patience, finish).await.is_err() {
            self.surprise("clients wait for answers that do not come".to_owned());
        }
        let left = patience.saturating_sub(from.elapsed());
        if timeout(left, self.ask_for_open()).await.is_err() {
            self.surprise("tasks do not come to their ends".to_owned());
        }
        self.report.settled_in = from.elapsed();
        if timeout(patience, self.ask_again()).await.is_err() {
            self.surprise("tasks that have ended are not shown".to_owned());
        }
    }

    /// Holds the clients between two operations, lets all tasks come to their ends, and does
    /// `work` while nothing moves. If it does not come to rest, that is noted.
    pub async fn at_rest(&mut self, patience: Duration, work: impl AsyncFnOnce(&mut Self)) {
        let shared = Arc::clone(&self.shared);
        let from = Instant::now();
        let Ok(_alone) = timeout(patience, shared.floor.write()).await else {
            self.surprise("clients wait for answers that do not come".to_owned());
            return;
        };
        let left = patience.saturating_sub(from.elapsed());
        if timeout(left, self.ask_for_open()).await.is_err() {
            self.surprise("tasks do not come to their ends".to_owned());
        }
        self.rested_after(from.elapsed());
        work(self).await;
    }

    /// Ends the clients, whatever they are at.
    pub async fn dismiss(&mut self) {
        self.clients.shutdown().await;
    }

    /// Asks for tasks that have ended; what is shown counts as told once more.
    async fn ask_again(&self) {
        let ended: Vec<String> = {
            let history = self.shared.history();
            let ended = history.tasks.keys().filter(|id| history.has_ended(id));
            ended.take(ASK_AGAIN_MAX).cloned().collect()
        };
        self.ask_for(ended).await;
    }

    /// Asks for the others until each has ended.
    async fn ask_for_open(&self) {
        let open: Vec<String> = {
            let history = self.shared.history();
            let open = history.tasks.keys().filter(|id| !history.has_ended(id));
            open.cloned().collect()
        };
        self.ask_for(open).await;
    }

    async fn ask_for(&self, ids: Vec<String>) {
        let ask = |id: String| async move {
            while let Some(task) = load::get_task(&self.shared, &id).await
                && !task.status.state.is_terminal()
            {
                sleep(Duration::from_millis(50)).await;
            }
        };
        futures_util::stream::iter(ids)
            .map(ask)
            .buffer_unordered(ASK_AT_ONCE)
            .collect::<()>()
            .await;
    }

    /// Checks what `read` shows of the store against what clients were told. If it has settled,
    /// every task must have ended.
    ///
    /// # Panics
    /// When the machine has no runtime for it.
    pub fn check(&mut self, settled: bool, read: impl AsyncFnOnce(&mut Checker<'_>)) -> Findings {
        self.report.checks += 1;
        tokio::task::block_in_place(|| {
            // Held throughout: clients that wake up meanwhile have nobody to talk to anyway. A
            // runtime of its own, since they may hold up the other one.
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            let mut history = self.shared.history();
            history.flush();
            let mut checker = Checker::new(&history, OWNER, settled);
            runtime.block_on(read(&mut checker));
            checker.finish()
        })
    }

    /// Adds the violations of a check to those before; each is found again by later checks, so
    /// the largest count stands.
    pub fn add(&mut self, findings: Findings) {
        for (invariant, count) in findings.violated {
            let known = self.before.violated.entry(invariant).or_default();
            *known = count.max(*known);
        }
        for violation in findings.violations {
            self.before.keep(violation);
        }
    }

    /// Whether anything was found so far.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.before.violated.is_empty() && self.shared.history().surprises.is_empty()
    }

    /// Something went wrong that is no client's to note.
    pub fn surprise(&mut self, what: String) {
        eprintln!("kill test: {what}");
        self.shared.history().surprise(what);
    }

    /// Tells people how far it is.
    pub fn say_progress(&self, killed: u32, more: &str) {
        let history = self.shared.history();
        let rest = self.rest_ms.last();
        let rest = rest.map_or(String::new(), |ms| format!(", at rest after {ms} ms"));
        eprintln!(
            "{killed} kills, {} tasks, {} streams, {} repeats, {} violations, {:.0?}{rest}{more}",
            history.tasks.len(),
            history.streams.len(),
            history.tried.repeats,
            self.before.violated.values().sum::<u64>(),
            self.began.elapsed()
        );
    }

    /// Sums it all up.
    #[must_use]
    pub fn conclude(mut self, last: Findings) -> Report {
        let counts = Findings {
            violations: Vec::new(),
            violated: BTreeMap::new(),
            ..last.clone()
        };
        self.add(last);
        self.report.findings = Findings {
            violations: self.before.violations,
            violated: self.before.violated,
            ..counts
        };
        let mut history = self.shared.history();
        history.flush();
        self.report.count(&history);
        drop(history);
        self.report.ready_ms = Figures::of(&self.ready_ms);
        self.report.back_ms = Figures::of(&self.back_ms);
        self.report.rest_ms = Figures::of(&self.rest_ms);
        self.report.elapsed = self.began.elapsed();
        self.report
    }
}
