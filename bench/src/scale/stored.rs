//! What operations cost with so many tasks stored.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;

use super::store::{CONTEXT, FEW, LARGE_AGENT, MANY, SMALL_AGENT, Store};
use super::{Found, Scale};
use crate::disk;
use crate::load::{self, Binding, Case, ListFilter, Outcome, Plan, Target};
use crate::process::resident_kib;
use crate::server::Server;

/// Enough to keep the server busy, few enough that answers do not wait for each other for long.
const READERS: usize = 8;
const SENDERS: usize = 32;

/// A list to ask for.
struct List {
    name: &'static str,
    path: &'static str,
    token: &'static str,
    filter: ListFilter,
}

fn lists(store: &Store) -> [List; 6] {
    let all = |total| ListFilter {
        total: Some(total),
        ..ListFilter::default()
    };
    let in_state = |state: &str, total| ListFilter {
        status: Some(state.to_owned()),
        ..all(total)
    };
    let list = |name, path, token, filter| List {
        name,
        path,
        token,
        filter,
    };
    let in_context = ListFilter {
        context_id: Some(CONTEXT.to_owned()),
        ..all(store.rare())
    };
    let (completed, waiting) = ("TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED");
    [
        list(
            "ListTasks, large owner and agent",
            LARGE_AGENT,
            MANY,
            all(store.many()),
        ),
        list("ListTasks, small owner", LARGE_AGENT, FEW, all(store.few())),
        list(
            "ListTasks, small agent",
            SMALL_AGENT,
            MANY,
            all(store.rare()),
        ),
        list("ListTasks, a context", LARGE_AGENT, MANY, in_context),
        list(
            "ListTasks, the usual state",
            LARGE_AGENT,
            MANY,
            in_state(completed, store.completed()),
        ),
        list(
            "ListTasks, a rare state",
            LARGE_AGENT,
            MANY,
            in_state(waiting, store.rare()),
        ),
    ]
}

/// Measures all of it on a copy of `store`.
pub(super) fn measure(scale: &Scale<'_>, store: &Store, runtime: &Runtime) -> Result<Vec<Found>> {
    let data = scale.work().join("data").join("scale");
    store.copy(&data)?;
    let mut found = vec![Found::new("database, bytes per task", store.bytes_each()?)];
    let server = scale.start(&data, "full")?;
    found.push(Found::new(
        "start after a stop, ms",
        milliseconds(server.started_in),
    ));
    std::thread::sleep(scale.warm_up() * 2);
    let resident = resident_kib(server.pid())? as f64 / 1024.0;
    found.push(Found::new("idle RSS, MiB", resident));

    let mut ask = |name: &str, plan: Plan| -> Result<Outcome> {
        let outcome = runtime
            .block_on(load::run(&plan))
            .with_context(|| name.to_owned())?;
        ensure!(outcome.errors == 0, "{name}: {:?}", outcome.first_errors);
        found.push(Found::new(
            format!("{name}, CPU µs"),
            outcome.cpu_us().unwrap_or(0.0),
        ));
        let p50 = milliseconds(outcome.latencies.quantile(0.5));
        let p99 = milliseconds(outcome.latencies.quantile(0.99));
        found.push(Found::new(format!("{name}, p50 ms"), p50));
        found.push(Found::new(format!("{name}, p99 ms"), p99));
        Ok(outcome)
    };
    let plan = |path: &str, token: &str, case, connections| Plan {
        connections,
        ..scale.plan(&server, path, token, case)
    };
    // Each once, and before anything else has been asked for, so that no cache has it.
    let sample = store.sample()?;
    let cold = Plan {
        warm_up: Duration::ZERO,
        requests_max: Some(sample.len() as u64),
        tasks: Some(sample),
        ..plan(LARGE_AGENT, MANY, Case::Get, READERS)
    };
    ask("GetTask, cold", cold)?;
    for list in lists(store) {
        let mut plan = plan(list.path, list.token, Case::List, READERS);
        plan.filter = list.filter;
        // A new task would change the total.
        plan.tasks = Some(Vec::new());
        ask(list.name, plan)?;
    }
    ask(
        "GetTask, recent",
        plan(LARGE_AGENT, MANY, Case::Get, READERS),
    )?;
    let sync = disk::sync_time(&data, scale.warm_up())?;
    let sent = ask("SendMessage", plan(SMALL_AGENT, MANY, Case::Send, SENDERS))?;
    found.push(Found::new("SendMessage, per second", sent.rate()));
    found.push(Found::new("sync control, µs", sync.as_secs_f64() * 1e6));
    let wal = fs::metadata(data.join("a2ad.db-wal")).map_or(0, |wal| wal.len());
    server.kill()?;
    let server = scale.start(&data, "full")?;
    found.push(Found::new(
        "start after kill -9, ms",
        milliseconds(server.started_in),
    ));
    found.push(Found::new(
        "with a log of MiB",
        wal as f64 / 1024.0 / 1024.0,
    ));
    server.stop()?;
    fs::remove_dir_all(&data)?;
    Ok(found)
}

fn target(server: &Server, path: &str, token: &str) -> Target {
    Target {
        token: Some(token.to_owned()),
        ..server.target.at(path)
    }
}

impl Scale<'_> {
    fn plan(&self, server: &Server, path: &str, token: &str, case: Case) -> Plan {
        Plan {
            target: target(server, path, token),
            binding: Binding::JsonRpc,
            case,
            connections: READERS,
            warm_up: self.warm_up(),
            time: self.time(),
            requests_max: None,
            pause: Duration::ZERO,
            pid: Some(server.pid()),
            tasks: None,
            filter: ListFilter::default(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
