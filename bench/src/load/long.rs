//! Artifacts that arrive in very many pieces: what one more event costs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use memchr::{memchr, memmem};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

use super::check::shown;
use super::http1::Connection;
use super::random::Random;
use super::request::{self, Template};
use super::{Binding, Target};
use crate::process::cpu_time;

/// How long all streams may take together.
const PATIENCE: Duration = Duration::from_secs(300);

/// What to do.
#[derive(Clone, Debug)]
pub struct LongPlan {
    /// An agent that answers with one artifact of `pieces` pieces of data, numbered by `n`.
    pub target: Target,
    /// What its message begins with.
    pub word: String,
    /// Pieces of the artifact.
    pub pieces: usize,
    /// Streams in all.
    pub streams: usize,
    /// Streams at a time.
    pub connections: usize,
    /// The server's process.
    pub pid: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct LongOutcome {
    /// Events that came, and were right.
    pub events: usize,
    /// In this time.
    pub time: Duration,
    /// What they took of the server's core.
    pub cpu: Duration,
}

impl LongOutcome {
    /// What an event took of the server's core, in µs.
    #[must_use]
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.events as f64
    }
}

/// Does it.
///
/// # Errors
/// When a stream is not as it should be.
pub async fn long(plan: &LongPlan) -> Result<LongOutcome> {
    let (begin, cpu_before) = (Instant::now(), cpu_time(plan.pid)?);
    let plan = Rc::new(plan.clone());
    let left = Rc::new(Cell::new(plan.streams));
    let set = LocalSet::new();
    let mut workers = JoinSet::new();
    for _ in 0..plan.connections {
        let (plan, left) = (Rc::clone(&plan), Rc::clone(&left));
        let work = async move {
            while let Some(rest) = left.get().checked_sub(1) {
                left.set(rest);
                one(&plan).await?;
            }
            anyhow::Ok(())
        };
        workers.spawn_local_on(work, &set);
    }
    let all = async {
        while let Some(ended) = workers.join_next().await {
            ended.context("a stream")??;
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, set.run_until(all)).await??;
    Ok(LongOutcome {
        events: plan.streams * events_in(plan.pieces),
        time: begin.elapsed(),
        cpu: cpu_time(plan.pid)? - cpu_before,
    })
}

/// The task, `working` and `completed` come with the pieces.
fn events_in(pieces: usize) -> usize {
    pieces + 3
}

async fn one(plan: &LongPlan) -> Result<()> {
    let message = request::message(&plan.target, Binding::JsonRpc, &plan.word, None, true);
    let mut template = Template::new(message)?;
    template.refresh(&mut Random::new());
    let mut connection = Connection::open(plan.target.address).await?;
    let status = connection.ask(template.bytes()).await?;
    let (mut body, mut seen, mut goes_on) = (Vec::new(), 0, true);
    while goes_on {
        goes_on = connection.body(&mut body).await?;
        ensure!(status == 200, "status {status}: {}", shown(&body));
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &body[at..]) {
            if let Some(data) = body[at..at + length].strip_prefix(b"data:") {
                check(data, seen, plan.pieces)?;
                seen += 1;
            }
            at += length + 1;
        }
        body.drain(..at);
    }
    let expected = events_in(plan.pieces);
    ensure!(seen == expected, "{seen} events instead of {expected}");
    Ok(())
}

fn check(data: &[u8], index: usize, pieces: usize) -> Result<()> {
    let has = |needle: &[u8]| memmem::find(data, needle).is_some();
    let right = match index.checked_sub(2) {
        None => has(b"TASK_STATE_SUBMITTED") || has(b"TASK_STATE_WORKING"),
        Some(number) if number < pieces => has(format!("\"n\":{number},").as_bytes()),
        Some(_) => has(b"TASK_STATE_COMPLETED"),
    };
    ensure!(right, "event {index} is another: {}", shown(data));
    Ok(())
}
