//! The kill test, for as long as CI can wait; `cargo xtask soak` is the long one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use a2ad_testkit::kill::{self, Plan};

/// How often the daemon is killed. `KILLS=500` for more.
const KILLS: u32 = 40;

#[test]
fn nothing_that_was_told_is_lost_or_changed_by_kills() {
    // Another seed every time, so that every build looks somewhere else.
    let seed = given("KILL_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000);
    let kills = given("KILLS").unwrap_or(KILLS);
    let mut plan = Plan::new(env!("CARGO_BIN_EXE_a2ad"), seed, kills);
    plan.repeat = format!("KILL_SEED={seed} KILLS={kills} cargo test -p a2ad --test it kill");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(Box::pin(kill::run(&plan)));
    println!("{report}");
    assert!(report.is_clean(), "{report}");
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

fn given<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}
