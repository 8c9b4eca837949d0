//! What all clients share: where servers are, what they were told, and how they get an answer.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2ad_client::Binding;
use a2ad_client::dial::Dialer;
use a2ad_proto::{GetTaskRequest, Task};
use futures_util::future::BoxFuture;
use tokio::sync::{RwLock, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::super::history::History;
use super::{ANSWER_MAX, TRIES_MAX};
use crate::client::{Client as _, Driven, Failure};

/// How long a client waits at most before it tries again.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// How long it waits if there is another server to ask.
const PAUSE: Duration = Duration::from_millis(25);

/// A server that is up.
#[derive(Clone, Copy, Debug)]
pub struct Up {
    /// Where it listens.
    pub to: SocketAddr,
    /// Since when it is ready.
    pub since: Instant,
    /// Which life this is, of all the lives of all servers.
    pub life: u32,
}

/// How a client talks to servers: the binding, and whose connections it uses.
#[derive(Clone, Debug)]
pub struct Way {
    /// The binding.
    pub binding: Binding,
    /// The connections.
    pub dialer: Dialer,
}

impl Way {
    /// With connections of its own.
    ///
    /// # Panics
    /// When the machine has no way to dial.
    #[must_use]
    pub fn new(binding: Binding) -> Self {
        Self {
            binding,
            dialer: Dialer::unguarded().expect("a dialer"),
        }
    }

    /// The client at this server.
    pub(super) fn to(&self, up: Up) -> Driven {
        Driven::at(up.to, self.binding, self.dialer.clone())
    }
}

/// What clients put up with. Anything else is a surprise.
#[derive(Clone, Copy, Debug)]
pub struct Bears {
    /// Connections that break: the call is made again.
    pub broken: bool,
    /// Answers that nothing can be done at the moment: the call is made again.
    pub unavailable: bool,
    /// Streams that end, and blocking calls that are answered, before the task does: the server
    /// stops in good order.
    pub early_ends: bool,
}

/// What all clients share.
#[derive(Debug)]
pub struct Shared {
    servers: watch::Receiver<Vec<Up>>,
    /// Calls go to the servers in turn, whoever makes them.
    next: AtomicUsize,
    history: Mutex<History>,
    /// Begin nothing new.
    pub enough: CancellationToken,
    /// Every operation is done with a share of it. Who has it alone finds all clients at rest.
    pub floor: RwLock<()>,
    pub(super) bears: Bears,
    way: Way,
}

impl Shared {
    /// For clients of the servers that are up at a time.
    #[must_use]
    pub fn new(servers: watch::Receiver<Vec<Up>>, history: History, bears: Bears) -> Self {
        Self {
            servers,
            next: AtomicUsize::new(0),
            history: Mutex::new(history),
            enough: CancellationToken::new(),
            floor: RwLock::new(()),
            bears,
            way: Way::new(Binding::JsonRpc),
        }
    }

    /// The history.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next server, as soon as one is up.
    pub(super) async fn up(&self) -> Up {
        let mut servers = self.servers.clone();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let up = servers.wait_for(|up| !up.is_empty()).await;
        match up.map(|up| up[turn % up.len()]) {
            Ok(up) => up,
            // The run is over; whoever runs it ends us.
            Err(_) => std::future::pending().await,
        }
    }

    /// Does something at a server for as long as that one counts as up.
    pub(super) async fn while_up<T>(&self, up: Up, work: impl Future<Output = T>) -> Option<T> {
        let mut servers = self.servers.clone();
        let gone = async {
            let gone = servers.wait_for(|all| all.iter().all(|it| it.life != up.life));
            gone.await.is_ok()
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            true = gone => None,
        }
    }

    /// Calls by the way that all share.
    pub(super) async fn answered<T>(
        &self,
        what: &str,
        call: impl Fn(Driven) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, String> {
        self.answered_by(&self.way, what, call).await
    }

    /// Calls until a server answers, over as many of their lives as that takes.
    pub(super) async fn answered_by<T>(
        &self,
        way: &Way,
        what: &str,
        call: impl Fn(Driven) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, String> {
        let mut cut = None;
        for _ in 0..TRIES_MAX {
            let up = self.up().await;
            let answer = timeout(ANSWER_MAX, call(way.to(up)));
            let answer = self.while_up(up, answer).await;
            match answer {
                Some(Ok(Ok(value))) => {
                    if let Some(cut) = cut {
                        self.resumed(up, cut);
                    }
                    return Ok(value);
                }
                Some(Ok(Err(Failure::Refused {
                    reason, message, ..
                }))) if !(self.bears.unavailable && reason == "UNAVAILABLE") => {
                    return Err(format!("{reason}: {message}"));
                }
                Some(Ok(Err(Failure::Broken(why)))) if !self.bears.broken => {
                    return Err(format!("broken: {why}"));
                }
                Some(Ok(Err(_))) | None => {
                    cut.get_or_insert_with(Instant::now);
                    self.history().tried.retries += 1;
                    self.pause(up).await;
                }
                Some(Err(_)) => {
                    let surprise = format!("{what}: no answer in {ANSWER_MAX:?}");
                    self.history().surprise(surprise);
                    return Err("no answer".to_owned());
                }
            }
        }
        Err("tried too often".to_owned())
    }

    /// What was cut at that time is answered, by a server which may be up again only since then.
    pub(super) fn resumed(&self, up: Up, cut: Instant) {
        let took = up.since.max(cut).elapsed();
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.history().resumed_ms.push(millis);
    }

    /// Waits before something that broke is tried again: until there is another life than the one
    /// that broke; not for long, should that one still live.
    pub(super) async fn pause(&self, broken: Up) {
        let mut servers = self.servers.clone();
        let others = |up: &Vec<Up>| up.iter().any(|up| up.life != broken.life);
        if others(&servers.borrow_and_update()) {
            tokio::time::sleep(PAUSE).await;
            return;
        }
        let _in_time = timeout(PAUSE_MAX, servers.wait_for(others)).await.is_ok();
    }
}

/// GetTask until answered; what it shows is written down.
pub async fn get_task(shared: &Shared, id: &str) -> Option<Task> {
    let request = GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    let answer = shared
        .answered("GetTask", |rpc| {
            let request = request.clone();
            Box::pin(async move { rpc.get(request).await })
        })
        .await;
    let mut history = shared.history();
    history.tried.reads += 1;
    match answer {
        Ok(task) => {
            history.shown(&task, true);
            Some(task)
        }
        Err(refusal) => {
            history.surprise(format!("task {id} cannot be had: {refusal}"));
            None
        }
    }
}
