//! The kill test: the real daemon under mixed load, killed at random, again and again, and an
//! oracle that reads what clients were told against what the store holds afterwards.
//!
//! | module | subject |
//! |---|---|
//! | [`plan`] | what a run will do, chosen from a seed |
//! | [`daemon`] | starting, finding and killing the binary |
//! | [`load`] | the clients |
//! | [`history`] | what they were told |
//! | [`stored`] | what the store holds |
//! | [`checker`] | one against the other |
//! | [`report`] | what it came to |
//!
//! The seed settles what is asked and when a kill comes after the start; it cannot settle how the
//! threads of another process interleave, so a failing seed is likely, not certain, to fail again.

pub mod checker;
pub mod daemon;
pub mod history;
pub mod load;
pub mod plan;
pub mod report;
pub mod stored;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_client::dial::Dialer;
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use checker::{Checker, Findings};
use daemon::{AGENT, Daemon, OWNER, Place};
use history::History;
use load::{Client, Shared, Up};
pub use plan::{Moment, Plan};
use report::Figures;
pub use report::Report;

/// How long a stop in good order may take.
const STOP_MAX: Duration = Duration::from_secs(40);
/// How many tasks are asked for at the end whose end is known already.
const ASK_AGAIN_MAX: usize = 20_000;
/// How many tasks are asked for at once.
const ASK_AT_ONCE: usize = 8;

/// Runs `plan` to its end and says what it came to.
///
/// Needs a runtime with several threads.
///
/// # Panics
/// When the machine does not do its part: no folder, no file.
pub async fn run(plan: &Plan) -> Report {
    eprintln!(
        "kill test: seed {}; repeat with: {}",
        plan.seed, plan.repeat
    );
    let own_folder = match &plan.folder {
        Some(_) => None,
        None => Some(tempfile::tempdir().expect("a folder can be made")),
    };
    let folder = match (&plan.folder, &own_folder) {
        (Some(folder), _) => folder.clone(),
        (None, Some(own)) => own.path().to_owned(),
        (None, None) => unreachable!("one of them is there"),
    };
    let place = Place {
        binary: plan.binary.clone(),
        folder: folder.clone(),
    };
    place.prepare().expect("the folder can be written");
    let mut report = Run::new(plan, place).run().await;
    if report.is_clean() {
        report.folder = plan.folder.clone();
    } else {
        report.folder = Some(own_folder.map_or(folder, tempfile::TempDir::keep));
    }
    report
}

struct Run<'a> {
    plan: &'a Plan,
    place: Place,
    server: watch::Sender<Option<Up>>,
    shared: Arc<Shared>,
    clients: JoinSet<()>,
    life: u32,
    ready_ms: Vec<u64>,
    /// What earlier checks found, and what went wrong with the daemon itself.
    before: Findings,
    began: Instant,
    report: Report,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, place: Place) -> Self {
        let (server, watched) = watch::channel(None);
        let history = History::in_file(&place.folder.join("history.jsonl"));
        let shared = Arc::new(Shared {
            server: watched,
            history: Mutex::new(history.expect("the history can be written")),
            enough: CancellationToken::new(),
            dialer: Dialer::unguarded().expect("a dialer"),
        });
        Self {
            plan,
            place,
            server,
            shared,
            clients: JoinSet::new(),
            life: 0,
            ready_ms: Vec::new(),
            before: Findings::default(),
            began: Instant::now(),
            report: Report {
                seed: plan.seed,
                kills: 0,
                kills_at_start: 0,
                messages: 0,
                acknowledged: 0,
                streams: 0,
                tried: history::Tried::default(),
                ready_ms: Figures::default(),
                resumed_ms: Figures::default(),
                settled_in: Duration::ZERO,
                checks: 0,
                findings: Findings::default(),
                elapsed: Duration::ZERO,
                folder: None,
                repeat: plan.repeat.clone(),
            },
        }
    }

    async fn run(mut self) -> Report {
        for number in 0..self.plan.clients {
            let shared = Arc::clone(&self.shared);
            let client = Client::new(shared, self.plan.seed, number, self.plan.rest_max);
            self.clients.spawn(client.run(self.plan.operations_max));
        }
        let mut up = true;
        for round in 0..self.plan.kills {
            if let Err(error) = self.live_and_die(round).await {
                self.surprise(format!("life {}: the daemon: {error}", self.life));
                up = false;
                break;
            }
            let killed = round + 1;
            if killed % self.plan.check_every == 0 && killed < self.plan.kills {
                self.check_copy();
            }
            if self.plan.progress && killed % 10 == 0 {
                self.say_progress(killed);
            }
        }
        if up && let Err(error) = self.settle_and_stop().await {
            self.surprise(format!("life {}: the daemon: {error}", self.life));
        }
        self.clients.shutdown().await;
        let data = self.place.data();
        let last = self.check(&data, self.report.settled_in > Duration::ZERO);
        self.conclude(last)
    }

    /// One life of the daemon, up to its kill.
    async fn live_and_die(&mut self, round: u32) -> Result<(), String> {
        let moment = self.plan.moment(round);
        let mut daemon = self.start(&format!("life {}, {moment:?}", self.life + 1))?;
        match moment {
            Moment::AfterStart(wait) => {
                // It may well be ready before; nobody is told.
                sleep(wait).await;
                self.report.kills_at_start += 1;
            }
            Moment::AfterReady(wait) => {
                daemon = self.announce(daemon).await?;
                sleep(wait).await;
            }
        }
        let killed = daemon.kill().await;
        self.server.send_replace(None);
        killed?;
        self.report.kills += 1;
        let kills = self.report.kills;
        let mut history = self.shared.history();
        history.note(|| serde_json::json!({"killed": kills, "moment": format!("{moment:?}")}));
        history.flush();
        Ok(())
    }

    fn start(&mut self, mark: &str) -> Result<Daemon, String> {
        self.life += 1;
        Daemon::start(&self.place, mark).map_err(|error| format!("cannot be started: {error}"))
    }

    /// Waits until the daemon is ready and tells the clients; if it will not be, it is ended, so
    /// that its database can be read.
    async fn announce(&mut self, mut daemon: Daemon) -> Result<Daemon, String> {
        match daemon.ready().await {
            Ok((to, took)) => {
                self.ready_ms
                    .push(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                self.server.send_replace(Some(Up {
                    to,
                    since: Instant::now(),
                    life: self.life,
                }));
                Ok(daemon)
            }
            Err(error) => {
                let _gone = daemon.kill().await.is_ok();
                Err(error)
            }
        }
    }

    /// A last life: the clients finish, everything settles, and it is stopped in good order.
    async fn settle_and_stop(&mut self) -> Result<(), String> {
        let daemon = self.start("the last life")?;
        let daemon = self.announce(daemon).await?;
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
        if timeout(self.plan.settle_max, finish).await.is_err() {
            self.surprise("clients wait for answers that do not come".to_owned());
        }
        let left = self.plan.settle_max.saturating_sub(from.elapsed());
        if timeout(left, self.ask_for_all()).await.is_err() {
            self.surprise("tasks do not come to their ends".to_owned());
        }
        self.report.settled_in = from.elapsed();
        self.server.send_replace(None);
        match daemon.stop(STOP_MAX).await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it stopped with {status}")),
            Err(error) => Err(error),
        }
    }

    /// Asks for tasks until each has ended; what is shown then counts as told.
    async fn ask_for_all(&self) {
        let (ended, open): (Vec<_>, Vec<_>) = {
            let history = self.shared.history();
            let ids = history.tasks.keys().cloned();
            ids.partition(|id| history.has_ended(id))
        };
        let ask = |id: String| async move {
            while let Some(task) = load::get_task(&self.shared, &id).await
                && !task.status.state.is_terminal()
            {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let all = ended.into_iter().take(ASK_AGAIN_MAX).chain(open);
        futures_util::stream::iter(all)
            .map(ask)
            .buffer_unordered(ASK_AT_ONCE)
            .collect::<()>()
            .await;
    }

    /// Checks a copy, so that the daemon finds its files as the kill left them.
    fn check_copy(&mut self) {
        let copy = self.place.folder.join("copy");
        let copied = copy_data(&self.place.data(), &copy);
        if let Err(error) = copied {
            self.surprise(format!("the data cannot be copied: {error}"));
            return;
        }
        let findings = self.check(&copy, false);
        self.add(findings);
        std::fs::remove_dir_all(&copy).expect("the copy can be removed");
    }

    fn check(&mut self, data: &Path, settled: bool) -> Findings {
        self.report.checks += 1;
        tokio::task::block_in_place(|| {
            // Held throughout: clients that wake up meanwhile have nobody to talk to anyway.
            let mut history = self.shared.history();
            history.flush();
            let mut checker = Checker::new(&history, OWNER, settled);
            let database = Place::database(data);
            let read = stored::read_all(&database, AGENT, &mut checker);
            tokio::runtime::Handle::current().block_on(read);
            checker.finish()
        })
    }

    /// Adds the violations of a check to those before; each is found again by later checks, so
    /// the largest count stands.
    fn add(&mut self, findings: Findings) {
        for (invariant, count) in findings.violated {
            let known = self.before.violated.entry(invariant).or_default();
            *known = count.max(*known);
        }
        for violation in findings.violations {
            self.before.keep(violation);
        }
    }

    fn surprise(&mut self, what: String) {
        eprintln!("kill test: {what}");
        self.shared.history().surprise(what);
    }

    fn say_progress(&self, killed: u32) {
        let history = self.shared.history();
        eprintln!(
            "{killed} kills, {} tasks, {} streams, {} repeats, {} violations, {:.0?}",
            history.tasks.len(),
            history.streams.len(),
            history.tried.repeats,
            self.before.violated.values().sum::<u64>(),
            self.began.elapsed()
        );
    }

    fn conclude(mut self, last: Findings) -> Report {
        let counts = Findings {
            violations: Vec::new(),
            violated: BTreeMap::new(),
            ..last
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
        self.report.elapsed = self.began.elapsed();
        self.report
    }
}

/// Copies what a killed daemon left, without the shared memory that only lives with a process.
fn copy_data(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_memory = name.to_string_lossy().ends_with("-shm");
        if entry.file_type()?.is_file() && !is_memory {
            std::fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
