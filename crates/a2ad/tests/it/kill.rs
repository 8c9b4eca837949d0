//! The kill test, for as long as CI can wait; `cargo xtask soak` is the long one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use a2ad_testkit::harness::Binding;
use a2ad_testkit::kill::load::Steady;
use a2ad_testkit::kill::{self, Plan, Report, many, rolling};

/// How often the daemon is killed. `KILLS=500` for more.
const KILLS: u32 = 40;

#[test]
fn nothing_that_was_told_is_lost_or_changed_by_kills() {
    let seed = seed();
    let kills = given("KILLS").unwrap_or(KILLS);
    let mut plan = Plan::new(env!("CARGO_BIN_EXE_a2ad"), seed, kills);
    plan.repeat = format!("KILL_SEED={seed} KILLS={kills} cargo test -p a2ad --test it kill");
    let report = run(kill::run(&plan));
    println!("{report}");
    // A test that asked for nothing would be green as well.
    assert_eq!(report.kills, kills);
    let tried = report.tried;
    let asked = [
        ("acknowledged", report.acknowledged),
        ("recovered", report.findings.recovered),
        ("cut", tried.retries),
        ("repeated", tried.repeats),
        ("resumed", tried.resumes),
        ("canceled", tried.cancels),
        ("followed up", tried.follow_ups),
    ];
    for (what, count) in asked {
        assert!(count > 0, "nothing was {what}: {report}");
    }
}

#[test]
fn nothing_is_lost_when_instances_die_freeze_or_are_cut_off_and_postgresql_dies() {
    let seed = seed();
    let mut plan = many::Plan::new(env!("CARGO_BIN_EXE_a2ad"), seed);
    plan.repeat = format!("KILL_SEED={seed} cargo test -p a2ad --test it postgresql_dies");
    let report = run(many::run(&plan));
    println!("{report}");
    assert!(report.kills >= plan.kills, "{report}");
    assert_eq!(report.faults["kills of PostgreSQL"], plan.postgres_kills);
    assert_eq!(report.faults["freezes"], plan.freezes);
    assert!(report.faults.contains_key("instances cut off"), "{report}");
    let asked = [
        ("acknowledged", report.acknowledged),
        ("recovered", report.findings.recovered),
        ("taken over in time", report.takeover_ms.count as u64),
        ("cut", report.tried.retries),
        ("repeated", report.tried.repeats),
        ("resumed", report.tried.resumes),
    ];
    for (what, count) in asked {
        assert!(count > 0, "nothing was {what}: {report}");
    }
}

#[test]
fn a_rolling_restart_fails_no_call() {
    let seed = seed();
    let mut plan = rolling::Plan::new(env!("CARGO_BIN_EXE_a2ad"), seed);
    plan.rounds = given("ROUNDS").unwrap_or(plan.rounds);
    plan.repeat = format!("KILL_SEED={seed} cargo test -p a2ad --test it rolling");
    let report = run(rolling::run(&plan));
    println!("{report}");
    let restarts = plan.instances * plan.rounds;
    assert_eq!(report.faults["restarts"] as usize, restarts, "{report}");
    assert!(report.acknowledged > 100, "{report}");
    assert_eq!(report.tried.retries, 0, "{report}");
}

/// The same for both bindings over HTTP/1.1, with calls that come at their own pace and streams that are
/// open all the time.
#[test]
fn a_rolling_restart_under_steady_load_fails_no_call() {
    let seed = seed();
    let mut plan = rolling::Plan::new(env!("CARGO_BIN_EXE_a2ad"), seed);
    plan.load = rolling::Load::Steady(Steady {
        rate: 30,
        streams: 30,
        words: 15,
        pause: Duration::from_millis(50),
        // Not gRPC: a call that meets the farewell of its connection (GOAWAY) on the way is not tried
        // again by the client as it is driven here.
        bindings: &[Binding::JsonRpc, Binding::HttpJson],
    });
    plan.repeat = format!("KILL_SEED={seed} cargo test -p a2ad --test it steady_load");
    let report = run(rolling::run(&plan));
    println!("{report}");
    assert_eq!(report.faults["restarts"] as usize, plan.instances);
    assert!(report.acknowledged > 100, "{report}");
    assert!(report.streams > 30, "{report}");
    assert_eq!(report.tried.retries, 0, "{report}");
}

/// Runs it, and expects nothing but good.
fn run(trial: impl Future<Output = Report>) -> Report {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(Box::pin(trial));
    assert!(report.is_clean(), "{report}");
    report
}

/// Another one every time, so that every build looks somewhere else.
fn seed() -> u64 {
    given("KILL_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000)
}

fn given<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}
