//! Streams on which nothing happens: what one costs, and how fast the first event reaches them all.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use memchr::{memchr, memmem};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

use super::check::shown;
use super::http1::Connection;
use super::prepare::task_id;
use super::random::Random;
use super::request::{self, Template};
use super::{Binding, Target};
use crate::histogram::Histogram;
use crate::process::resident_kib;

/// Streams that are opened at the same time.
const OPENERS: usize = 32;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to do.
#[derive(Clone, Debug)]
pub struct IdlePlan {
    /// An agent that works on a message `hold …` until it is canceled.
    pub target: Target,
    /// How many follow its task.
    pub streams: usize,
    /// The server's process.
    pub pid: u32,
    /// How long the server may put its memory in order before it is measured.
    pub settle: Duration,
    /// Whether to cancel the task in the end, which is an event for everybody.
    pub cancels: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct IdleOutcome {
    /// The server's memory without the streams.
    pub before_kib: u64,
    /// And with them.
    pub after_kib: u64,
    /// How many there were.
    pub streams: usize,
    /// When the event reached each of them, from when it was asked for.
    pub arrivals: Option<Histogram>,
}

impl IdleOutcome {
    /// What one stream costs.
    #[must_use]
    pub fn kib_each(&self) -> f64 {
        let grown = self.after_kib.saturating_sub(self.before_kib);
        grown as f64 / self.streams as f64
    }
}

/// Does it.
///
/// # Errors
/// When a stream does not open or does not get its event.
pub async fn idle(plan: &IdlePlan) -> Result<IdleOutcome> {
    let (task, _held) = timeout(PATIENCE, hold(&plan.target)).await??;
    sleep(plan.settle).await;
    let before_kib = resident_kib(plan.pid)?;
    let set = LocalSet::new();
    let streams = set.run_until(open(plan, &task));
    let streams = timeout(PATIENCE, streams)
        .await
        .context("open the streams")??;
    sleep(plan.settle).await;
    let after_kib = resident_kib(plan.pid)?;
    let arrivals = match plan.cancels {
        true => Some(set.run_until(tell_all(plan, &task, streams)).await?),
        false => None,
    };
    Ok(IdleOutcome {
        before_kib,
        after_kib,
        streams: plan.streams,
        arrivals,
    })
}

/// Makes a task that stays at work, and the stream that keeps some servers working on it.
async fn hold(target: &Target) -> Result<(String, Connection)> {
    let message = request::message(target, Binding::JsonRpc, "hold", None, true);
    let mut template = Template::new(message)?;
    template.refresh(&mut Random::new());
    let mut connection = Connection::open(target.address).await?;
    let status = connection.ask(template.bytes()).await?;
    ensure!(status == 200, "status {status}");
    let mut body = Vec::new();
    while memmem::find(&body, b"TASK_STATE_WORKING").is_none() {
        let more = connection.body(&mut body).await?;
        ensure!(more, "the task does not stay at work: {}", shown(&body));
    }
    let id = task_id(&body, true);
    Ok((
        id.with_context(|| format!("no task: {}", shown(&body)))?,
        connection,
    ))
}

async fn open(plan: &IdlePlan, task: &str) -> Result<Vec<Connection>> {
    let request: Rc<[u8]> = request::subscribe(&plan.target, Binding::JsonRpc, task, None).into();
    let left = Rc::new(Cell::new(plan.streams));
    let streams = Rc::new(RefCell::new(Vec::with_capacity(plan.streams)));
    let mut openers = JoinSet::new();
    for _ in 0..OPENERS {
        let (request, left, streams) = (Rc::clone(&request), Rc::clone(&left), Rc::clone(&streams));
        let address = plan.target.address;
        openers.spawn_local(async move {
            while let Some(rest) = left.get().checked_sub(1) {
                left.set(rest);
                let mut connection = Connection::open(address).await?;
                let status = connection.ask(&request).await?;
                let mut body = Vec::new();
                // A stream opens with the task.
                while memchr(b'\n', &body).is_none() {
                    let more = connection.body(&mut body).await?;
                    ensure!(status == 200 && more, "status {status}: {}", shown(&body));
                }
                streams.borrow_mut().push(connection);
            }
            anyhow::Ok(())
        });
    }
    while let Some(opened) = openers.join_next().await {
        opened.context("open streams")??;
    }
    Ok(streams.take())
}

/// Cancels the task and waits until everybody knows.
async fn tell_all(plan: &IdlePlan, task: &str, streams: Vec<Connection>) -> Result<Histogram> {
    let mut listeners = JoinSet::new();
    for mut connection in streams {
        listeners.spawn_local(async move {
            let mut body = Vec::new();
            let mut goes_on = true;
            while memmem::find(&body, b"TASK_STATE_CANCELED").is_none() {
                ensure!(
                    goes_on,
                    "the stream ends without the event: {}",
                    shown(&body)
                );
                goes_on = connection.body(&mut body).await?;
            }
            anyhow::Ok((Instant::now(), connection))
        });
    }
    // Until all of them listen.
    tokio::task::yield_now().await;
    let mut canceler = Connection::open(plan.target.address).await?;
    let begin = Instant::now();
    let status = canceler.ask(&request::cancel(&plan.target, task)).await?;
    ensure!(status == 200, "status {status} for the cancel");
    let mut arrivals = Histogram::default();
    // Nobody hangs up before all are told: the server would be busy with that as well.
    let mut told = Vec::with_capacity(plan.streams);
    let all = async {
        while let Some(arrived) = listeners.join_next().await {
            let (at, connection) = arrived.context("follow the task")??;
            arrivals.record(at.duration_since(begin));
            told.push(connection);
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, all).await.context("tell all streams")??;
    Ok(arrivals)
}
