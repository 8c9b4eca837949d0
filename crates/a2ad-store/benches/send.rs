//! What a simple send costs the writer: CPU microseconds per task that begins and ends in one
//! commit, in groups of 128, in an empty database and in one that holds many tasks already.
//!
//! `cargo bench -p a2ad-store --bench send -- [tasks stored] [tasks measured] [file]`; a file that is
//! named is kept, and one that exists is not filled again.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark has nobody to report to but its reader"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2ad_core::clock::{Clock, Random, SystemClock, SystemRandom, uuid};
use a2ad_core::contract::sample::{alice, change, said, unborn, write_artifact};
use a2ad_core::keys::{Attempt, Number, PublicIds, TaskKey, first_16};
use a2ad_core::store::{Change, Committed, ListFilter, Once, Store, Wake};
use a2ad_core::task::{Command, Entry, Fold, Outcome, Snapshot, TurnState, apply, splice};
use a2ad_proto::Role;
use a2ad_store::{Core, Durability, SqliteOptions, SqliteStore};

/// As the binary has it: what the engine allocates on one thread is freed on another.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Sends in a commit, and commits between two checkpoints.
const GROUP: usize = 128;
const SERIES: usize = 64;

#[derive(Debug)]
struct Deaf;

impl Wake for Deaf {
    fn committed(&self, _: Vec<Committed>) {}
    fn stopped(&self, reason: &str) {
        panic!("{reason}");
    }
}

/// What the engine makes of a message that a pure agent answers at its first poll.
fn whole_turn(ids: &PublicIds, key: i64) -> Change {
    let now = SystemClock.now();
    let mut message = said(Role::User, "Please translate this sentence into French.");
    let unborn = unborn(ids, key, &SystemRandom, &alice());
    message.message_id = uuid(&SystemRandom);
    message.task_id = unborn.identity.id.as_str().to_owned();
    message.context_id = unborn.identity.context_id.as_str().to_owned();
    let submit = Command::Submit {
        message,
        metadata: None,
        accepted_output_modes: Vec::new(),
    };
    let mut whole = change(&unborn, &[submit], now);
    let (turn, attempt) = (Number::FIRST, Attempt::FIRST);
    whole.head.turns[0].state = TurnState::Leased;
    whole.head.turns[0].attempt = attempt;
    let answer = write_artifact(
        turn,
        attempt,
        "answer",
        "Merci de traduire cette phrase en français.",
    );
    let finish = Command::Finish {
        turn,
        attempt,
        outcome: Outcome::Completed(None),
    };
    let end = change(
        &whole.head,
        &[Command::Start { turn, attempt }, answer, finish],
        now,
    );
    whole.head = end.head;
    whole.entries.extend(end.entries);
    whole.turns.clear();
    let mut fold = Fold::default();
    for entry in &whole.entries {
        apply(&mut fold, entry.record().unwrap());
    }
    whole.snapshot = Some(fold.snapshot());
    let random = SystemRandom.bits().to_le_bytes();
    whole.once = Some(Once {
        key: first_16(&random),
        body: first_16(&random),
        number: turn,
    });
    whole
}

/// The time that this thread has spent on a core.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

struct Bench {
    next_key: i64,
    /// Copies the log back, which a store does on another thread.
    side: rusqlite::Connection,
}

impl Bench {
    fn on(path: &Path) -> Self {
        drop(open(path, Durability::Os));
        let side = rusqlite::Connection::open(path).unwrap();
        let next_key = side
            .query_row("SELECT coalesce(max(key), 0) + 1 FROM tasks", [], |row| {
                row.get(0)
            })
            .unwrap();
        Self { next_key, side }
    }

    /// Commits `tasks` in groups; the CPU time and the time of all commits.
    fn commit(&mut self, core: &mut Core, tasks: usize) -> (Duration, Duration) {
        let (mut spent, mut lasted) = (Duration::ZERO, Duration::ZERO);
        let mut left = tasks.div_ceil(GROUP);
        while left > 0 {
            // Made beforehand and measured together: the kernel brings a thread's time up to date
            // only at its ticks.
            let series: Vec<Vec<Change>> = (0..left.min(SERIES))
                .map(|_| {
                    (0..GROUP)
                        .map(|_| whole_turn(core.public_ids(), self.next_key()))
                        .collect()
                })
                .collect();
            left -= series.len();
            let (began, cpu_began) = (Instant::now(), cpu());
            for group in series {
                let results = core.commit(group);
                assert!(results.iter().all(Result::is_ok));
            }
            spent += cpu() - cpu_began;
            lasted += began.elapsed();
            self.side
                .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
                .unwrap();
        }
        (spent, lasted)
    }

    fn next_key(&mut self) -> i64 {
        self.next_key += 1;
        self.next_key
    }
}

fn open(path: &Path, durability: Durability) -> Core {
    let options = SqliteOptions {
        durability,
        ..SqliteOptions::at(path)
    };
    Core::open(&options, Arc::new(Deaf)).unwrap()
}

/// The same through a store, by callers that wait for their answers: the CPU of all threads.
fn call(path: &Path, bench: &mut Bench, callers: usize, sends: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let mut spent = Duration::ZERO;
    runtime.block_on(async {
        let store = SqliteStore::open(SqliteOptions::at(path), Arc::new(Deaf)).unwrap();
        let store = Arc::new(store);
        let mut left = sends / callers;
        while left > 0 {
            let each = left.min(64);
            left -= each;
            // Dealt out like cards, since an engine takes a key when it needs one.
            let mut work: Vec<Vec<Change>> = vec![Vec::new(); callers];
            for _ in 0..each {
                for hand in &mut work {
                    hand.push(whole_turn(store.public_ids(), bench.next_key()));
                }
            }
            let began = cpu_of_all();
            let mut tasks = tokio::task::JoinSet::new();
            for changes in work {
                let store = Arc::clone(&store);
                tasks.spawn(async move {
                    for change in changes {
                        store.commit(change).await.unwrap();
                    }
                });
            }
            tasks.join_all().await;
            spent += cpu_of_all() - began;
        }
    });
    let each = spent.as_secs_f64() * 1e6 / sends as f64;
    println!("{callers} callers: {each:.2} µs of CPU per send, all threads");
}

/// The time that all threads have spent on a core.
fn cpu_of_all() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .map(|task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
            Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
        })
        .sum()
}

/// Reading what the engine does not have in memory, and folding it as the engine does: a task by
/// its id, and a page of fifty.
fn read(path: &Path, newest: i64) {
    let began = Instant::now();
    let store = SqliteStore::open(SqliteOptions::at(path), Arc::new(Deaf)).unwrap();
    println!("open: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut ids = Vec::new();
        for n in 1..=20_000_i64 {
            let key = TaskKey(n * 7_919 % newest);
            ids.extend(
                store
                    .head(key)
                    .await
                    .unwrap()
                    .map(|it| it.identity.id.clone()),
            );
        }
        let mut spent = Duration::ZERO;
        let began = cpu();
        for id in &ids {
            let stored = store.load(&alice(), id, 1 << 20).await.unwrap().unwrap();
            fold(stored.snapshot.as_ref(), &stored.entries);
        }
        spent += cpu() - began;
        let each = spent.as_secs_f64() * 1e6 / ids.len() as f64;
        println!("a task: {each:.1} µs");
        for folding in [false, true] {
            let began = cpu();
            for _ in 0..1_000 {
                let filter = ListFilter::default();
                let page = store
                    .list(
                        &alice(),
                        &filter,
                        None,
                        50,
                        usize::MAX,
                        false,
                        &mut |_, _| false,
                    )
                    .await
                    .unwrap();
                for listed in page.tasks.iter().filter(|_| folding) {
                    fold(listed.snapshot.as_ref(), &listed.entries);
                }
            }
            let each = (cpu() - began).as_secs_f64() * 1e3;
            println!("a page of 50, folded {folding}: {each:.0} µs");
        }
    });
}

fn fold(snapshot: Option<&Snapshot>, entries: &[Entry]) -> Snapshot {
    if let (None, Some(spliced)) = (snapshot, splice(entries)) {
        return spliced;
    }
    let mut fold = snapshot.map_or_else(Fold::default, |it| Fold::thaw(it).unwrap());
    for entry in entries {
        apply(&mut fold, entry.record().unwrap());
    }
    fold.snapshot()
}

fn main() {
    let numbers: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let number = |at: usize, otherwise: usize| {
        numbers
            .get(at)
            .map_or(otherwise, |text| text.parse().unwrap())
    };
    let (stored, measured) = (number(0, 0), number(1, 128 * 256));
    let dir = tempfile::tempdir().unwrap();
    let path = numbers
        .get(2)
        .map_or_else(|| dir.path().join("a2ad.db"), PathBuf::from);
    let began = Instant::now();
    let mut bench = Bench::on(&path);
    println!("first open: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let missing = stored.saturating_sub(usize::try_from(bench.next_key).unwrap());
    bench.commit(&mut open(&path, Durability::Os), missing);
    let mut core = open(&path, Durability::Full);
    for round in 0..4 {
        let (spent, lasted) = bench.commit(&mut core, measured);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / measured as f64;
        println!(
            "{stored} stored, round {round}: {:.2} µs of CPU per send, {:.2} µs in all",
            each(spent),
            each(lasted)
        );
    }
    let pages: i64 = bench
        .side
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    println!("{} tasks in {} MiB", bench.next_key, pages * 8 / 1024);
    drop(core);
    for callers in [32, 256] {
        call(&path, &mut bench, callers, measured);
    }
    let newest = bench.next_key;
    drop(bench);
    read(&path, newest);
}
