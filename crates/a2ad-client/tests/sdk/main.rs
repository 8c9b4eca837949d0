//! What our client sees of agents served by the official SDKs, over every binding that they have.
//!
//! `cargo xtask interop servers` starts the agents of `interop/servers` and names them in
//! `A2AD_SDK_SERVERS`: `python=http://…/agent-card.json,js=…`. Without, nothing is tested.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test, with a runner of its own because its cases are known only when it runs"
)]

mod agent;
mod cuts;
mod proxy;
mod scenarios;

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use a2ad_client::{Binding, Client};
use agent::Agent;
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const DEADLINE: Duration = Duration::from_secs(20);
/// How many cases a server is given at a time. Most of them wait.
const AT_A_TIME: usize = 8;

/// The bindings that each SDK serves. A card that lists others, more or fewer, fails.
const BINDINGS: [Binding; 3] = [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc];

pub(crate) type Run = fn(Agent) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Names scenarios after the functions that play them.
macro_rules! scenarios {
    ($($place:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), |agent| Box::pin($place::$name(agent)))),*]
    };
}

const SCENARIOS: &[(&str, Run)] = scenarios![
    scenarios::the_card_is_found_and_its_order_kept,
    scenarios::send_answers_with_the_finished_task,
    scenarios::a_failure_of_the_agent_is_a_task_and_no_error,
    scenarios::send_can_answer_at_once,
    scenarios::a_stream_tells_everything_in_order,
    scenarios::get_returns_the_task_with_as_much_history_as_wanted,
    scenarios::list_pages_through_a_context,
    scenarios::cancel_ends_the_task,
    scenarios::cancel_ends_the_stream,
    scenarios::a_subscriber_joins_a_running_task,
    scenarios::a_subscriber_joins_a_task_that_asks,
    scenarios::waiting_ends_with_the_task_or_its_question,
    scenarios::a_task_asks_and_goes_on_with_the_answer,
    scenarios::an_agent_can_answer_with_a_message,
    scenarios::a_task_that_is_not_there_is_not_found,
    scenarios::a_task_that_has_ended_takes_nothing_more,
    scenarios::what_is_not_offered_is_refused,
    cuts::a_stream_that_is_cut_goes_on,
    cuts::what_happened_meanwhile_is_made_up_for,
    cuts::a_task_that_ended_meanwhile_is_read,
    cuts::a_subscription_that_is_cut_goes_on,
    cuts::a_stream_heals_wherever_it_is_cut,
    cuts::a_message_that_may_have_arrived_is_not_sent_again,
];

/// What a server does wrong so that a scenario cannot be played with it: the server, perhaps with one
/// of its bindings, the scenario, and why. docs/interop.md has the same list.
const DEFECTS: &[(&str, &str, &str)] = &[
    (
        "rust",
        "a_subscriber_joins_a_task_that_asks",
        "subscribing to a task that waits for input says that there is no such task",
    ),
    ("python03", "list_pages_through_a_context", NO_LIST),
    (
        "python03",
        "a_message_that_may_have_arrived_is_not_sent_again",
        NO_LIST,
    ),
    (
        "python03",
        "cancel_ends_the_stream",
        "streams are not told that their task was canceled",
    ),
    ("python03", "a_stream_that_is_cut_goes_on", TWICE),
    ("python03", "a_stream_heals_wherever_it_is_cut", TWICE),
    ("python03", "what_happened_meanwhile_is_made_up_for", TWICE),
    ("python03", "a_subscriber_joins_a_running_task", TWICE),
    ("python03", "a_subscription_that_is_cut_goes_on", TWICE),
    (
        "python03",
        "waiting_ends_with_the_task_or_its_question",
        TWICE,
    ),
    ("python03 JSONRPC", "what_is_not_offered_is_refused", WORDS),
    ("python03 GRPC", "what_is_not_offered_is_refused", WORDS),
    (
        "python03 HTTP+JSON",
        "a_task_that_is_not_there_is_not_found",
        "streams of HTTP+JSON break where others are refused",
    ),
    (
        "python03 HTTP+JSON",
        "a_task_that_has_ended_takes_nothing_more",
        "streams of HTTP+JSON break where others are refused",
    ),
    ("js03", "list_pages_through_a_context", NO_LIST),
    (
        "js03",
        "a_message_that_may_have_arrived_is_not_sent_again",
        NO_LIST,
    ),
    ("js03 GRPC", "cancel_ends_the_task", WORDS),
    (
        "js03 GRPC",
        "a_task_that_has_ended_takes_nothing_more",
        WORDS,
    ),
    (
        "js03 HTTP+JSON",
        "a_task_that_is_not_there_is_not_found",
        STREAMS,
    ),
    (
        "js03 HTTP+JSON",
        "a_task_that_has_ended_takes_nothing_more",
        STREAMS,
    ),
];

const STREAMS: &str = "a stream that is refused is an internal error";
const WORDS: &str = "which error it is is said in words only";
const NO_LIST: &str = "protocol 0.3 has no list of tasks";
const TWICE: &str = "chunks are kept once for each stream that is open, so the task has them twice";

tokio::task_local! {
    /// The case that is played, for the panic hook.
    static CASE: String;
}

type Failures = Arc<Mutex<BTreeMap<String, String>>>;

fn main() -> ExitCode {
    let Ok(servers) = std::env::var("A2AD_SDK_SERVERS") else {
        println!("no servers, nothing tested; `cargo xtask interop servers` starts them");
        return ExitCode::SUCCESS;
    };
    let only = std::env::var("A2AD_SDK_ONLY").unwrap_or_default();
    let failures = Failures::default();
    watch_panics(Arc::clone(&failures));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let counts = runtime.block_on(async {
        let mut all = JoinSet::new();
        for server in servers.split(',') {
            let (name, url) = server.split_once('=').expect("name=url");
            all.spawn(play(name.to_owned(), url.to_owned(), only.clone()));
        }
        all.join_all().await
    });
    let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    let mut good = true;
    for counts in counts {
        good &= counts.print(&failures);
    }
    ExitCode::from(u8::from(!good))
}

/// What panics say is kept under the name of the case, in place of a mix on the terminal.
fn watch_panics(failures: Failures) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        let said = panic.payload_as_str().unwrap_or("a panic");
        let told = format!("{}: {said}", place.unwrap_or_default());
        match CASE.try_with(Clone::clone) {
            Ok(case) => {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.entry(case).or_insert(told);
            }
            Err(_) => println!("{told}"),
        }
    }));
}

#[derive(Default)]
struct Counts {
    server: String,
    passed: BTreeMap<&'static str, usize>,
    failed: Vec<(String, Duration)>,
    skipped: Vec<(String, &'static str)>,
    time: Duration,
}

impl Counts {
    fn print(&self, failures: &BTreeMap<String, String>) -> bool {
        let by_binding: Vec<_> = BINDINGS
            .iter()
            .map(|binding| {
                let passed = self.passed.get(binding.name()).copied().unwrap_or(0);
                format!("{binding} {passed}")
            })
            .collect();
        println!(
            "{}: {} passed, {} failed, {} scenarios skipped, {:.1} s",
            self.server,
            by_binding.join(", "),
            self.failed.len(),
            self.skipped.len(),
            self.time.as_secs_f64()
        );
        for (name, why) in &self.skipped {
            println!("  skipped {name}: {why}");
        }
        for (case, time) in &self.failed {
            let why = failures
                .get(case)
                .map_or("the deadline has passed", |why| why);
            println!("  FAILED {case} after {:.1} s", time.as_secs_f64());
            println!("    {}", why.replace('\n', "\n    "));
        }
        self.failed.is_empty()
    }
}

/// Plays all scenarios with one server.
async fn play(server: String, card_url: String, only: String) -> Counts {
    let begin = Instant::now();
    let mut counts = Counts {
        server: server.clone(),
        ..Counts::default()
    };
    let found = CASE.scope(server.clone(), async { Client::connect(&card_url).await });
    if let Err(error) = found.await {
        println!("{server}: no card: {error}");
        counts.failed.push((server, begin.elapsed()));
        return counts;
    }
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut cases = JoinSet::new();
    for (name, run) in SCENARIOS.iter().filter(|(name, _)| name.contains(&only)) {
        for binding in BINDINGS {
            let here = format!("{server} {binding}");
            let defect = DEFECTS
                .iter()
                .find(|(at, scenario, _)| (*at == server || *at == here) && scenario == name);
            if let Some((at, _, why)) = defect {
                let skipped = (format!("{at}: {name}"), *why);
                if !counts.skipped.contains(&skipped) {
                    counts.skipped.push(skipped);
                }
                continue;
            }
            let (server, card_url) = (server.clone(), card_url.clone());
            let turns = Arc::clone(&turns);
            cases.spawn(async move {
                let _turn = turns.acquire_owned().await;
                let begin = Instant::now();
                let case = format!("{server} {binding} {name}");
                let scenario = CASE.scope(case.clone(), async move {
                    run(Agent::over(&server, &card_url, binding).await).await;
                });
                let scenario = AssertUnwindSafe(scenario).catch_unwind();
                let done = tokio::time::timeout(DEADLINE, scenario).await;
                (case, binding, matches!(done, Ok(Ok(()))), begin.elapsed())
            });
        }
    }
    while let Some(case) = cases.join_next().await {
        let (case, binding, good, time) = case.unwrap();
        if good {
            *counts.passed.entry(binding.name()).or_default() += 1;
        } else {
            counts.failed.push((case, time));
        }
    }
    counts.failed.sort();
    counts.time = begin.elapsed();
    counts
}
