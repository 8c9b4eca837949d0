//! What a PostgreSQL store does in a second, with server and client on this machine and every
//! commit synced: durable accepts, claims with the finish of what was claimed, tasks born leased and
//! finished, loads, first pages of lists; and how long it takes until another instance hears.
//!
//! `cargo bench -p a2ad-store --bench postgres -- [tasks of each kind] [callers] [stores] [tasks
//! stored before]`
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark has nobody to report to but its reader"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a2ad_core::clock::{Clock, Random, SystemClock, SystemRandom};
use a2ad_core::contract::sample::{alice, change, finish, submit, unborn};
use a2ad_core::keys::{HolderId, Number, TaskKey};
use a2ad_core::store::{Change, Committed, ListFilter, Once, Store, Wake};
use a2ad_core::task::{Head, Outcome};
use a2ad_pgkit::{Cluster, Durability};
use a2ad_store::{PostgresOptions, PostgresStore};
use tokio::task::JoinSet;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Remembers when it heard of tasks that others changed.
#[derive(Debug, Default)]
struct Ears {
    heard: Mutex<HashMap<TaskKey, Instant>>,
}

impl Wake for Ears {
    fn committed(&self, _: Vec<Committed>) {}
    fn stopped(&self, reason: &str) {
        panic!("{reason}");
    }
    fn changed(&self, tasks: &[(TaskKey, Number)]) {
        let now = Instant::now();
        let mut heard = self.heard.lock().unwrap();
        for (task, _) in tasks {
            heard.entry(*task).or_insert(now);
        }
    }
}

struct Instance {
    store: PostgresStore,
    ears: Arc<Ears>,
    holder: HolderId,
}

impl Instance {
    async fn open(url: &str) -> Self {
        let options = PostgresOptions::at(url);
        let ears = Arc::new(Ears::default());
        let store = PostgresStore::open(options, ears.clone()).await.unwrap();
        let holder = store.open_holder().await.unwrap();
        Self {
            store,
            ears,
            holder,
        }
    }

    async fn accept(&self, lease: bool) -> Change {
        let key = self.store.allot(1).await.unwrap().start;
        let head = unborn(self.store.public_ids(), key, &SystemRandom, &alice());
        let message = submit("Please translate this sentence into French.");
        let mut change = change(&head, &[message], SystemClock.now());
        change.lease_to = lease.then_some(self.holder);
        change.once = Some(Once {
            key: SystemRandom.bits().to_le_bytes(),
            body: SystemRandom.bits().to_le_bytes(),
            number: Number::FIRST,
        });
        change
    }

    async fn finish(&self, head: &Head) {
        let end = change(
            head,
            &[finish(head, Outcome::Completed(None))],
            SystemClock.now(),
        );
        self.store.commit(end).await.unwrap();
    }
}

/// Has `callers` do `count` of something, and prints how fast that was.
async fn measure<F>(
    what: &str,
    count: usize,
    callers: usize,
    instances: &[Arc<Instance>],
    one: impl Fn(Arc<Instance>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = usize> + Send,
{
    let left = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for caller in 0..callers {
        let instance = Arc::clone(&instances[caller % instances.len()]);
        let (left, one) = (Arc::clone(&left), one.clone());
        running.spawn(async move {
            let mut worst = 0.0_f64;
            while left.load(Ordering::Relaxed) < count {
                let begin = Instant::now();
                let done = one(Arc::clone(&instance)).await;
                worst = worst.max(begin.elapsed().as_secs_f64());
                left.fetch_add(done, Ordering::Relaxed);
                if done == 0 {
                    break;
                }
            }
            worst
        });
    }
    let worst = running.join_all().await.into_iter().fold(0.0, f64::max);
    let done = left.load(Ordering::Relaxed);
    let rate = done as f64 / begin.elapsed().as_secs_f64();
    println!("{what:<28} {rate:>8.0}/s   slowest {:.0} ms", worst * 1e3);
}

fn main() {
    let arguments: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let argument = |at: usize, default| arguments.get(at).copied().unwrap_or(default);
    let (count, callers) = (argument(0, 20_000), argument(1, 256));
    let (stores, before) = (argument(2, 1), argument(3, 0));
    let cluster = Cluster::start(Durability::Full);
    let url = cluster.create();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(run(url, count, callers, stores, before));
}

async fn run(url: String, count: usize, callers: usize, stores: usize, before: usize) {
    let mut instances = Vec::new();
    for _ in 0..stores {
        instances.push(Arc::new(Instance::open(&url).await));
    }
    let leased = |instance: Arc<Instance>| async move {
        let change = instance.accept(true).await;
        let head = instance.store.commit(change).await.unwrap().head;
        instance.finish(&head).await;
        1
    };
    if before > 0 {
        measure("stored before", before, 512, &instances, leased).await;
    }
    measure("accept", count, callers, &instances, |it| async move {
        let change = it.accept(false).await;
        it.store.commit(change).await.unwrap();
        1
    })
    .await;
    measure("claim and finish", count, 8, &instances, |it| async move {
        let wanted = vec![(alice().agent, 128)];
        let claims = it.store.claim(it.holder, wanted).await.unwrap();
        let count = claims.turns.len();
        let mut finishing = JoinSet::new();
        for claimed in claims.turns {
            let it = Arc::clone(&it);
            finishing.spawn(async move {
                let head = it.store.head(claimed.turn.task).await.unwrap().unwrap();
                it.finish(&head).await;
            });
        }
        finishing.join_all().await;
        count
    })
    .await;
    measure(
        "accept leased, then finish",
        count,
        callers,
        &instances,
        leased,
    )
    .await;
    let change = instances[0].accept(false).await;
    let head = instances[0].store.commit(change).await.unwrap().head;
    let id = head.identity.id.clone();
    measure("load", 4 * count, callers, &instances, move |it| {
        let id = id.clone();
        async move {
            let loaded = it.store.load(&alice(), &id, 1 << 20).await.unwrap();
            usize::from(loaded.is_some())
        }
    })
    .await;
    measure("list of 50", count / 10, 16, &instances, |it| async move {
        let filter = ListFilter::default();
        let page = it
            .store
            .list(&alice(), &filter, None, 50, 1 << 20, false, &mut |_, _| {
                false
            })
            .await
            .unwrap();
        usize::from(page.tasks.len() == 50)
    })
    .await;
    hear(&instances[0], &Instance::open(&url).await).await;
    for instance in &instances {
        instance.store.close().await;
    }
}

/// How long after a commit is answered the other instance hears of it, at 500 commits a second.
async fn hear(one: &Instance, other: &Instance) {
    let mut told = Vec::new();
    for _ in 0..1_000 {
        let change = one.accept(false).await;
        let head = one.store.commit(change).await.unwrap().head;
        told.push((head.identity.key, Instant::now()));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let heard = other.ears.heard.lock().unwrap();
    let times = told.iter().map(|(task, told)| {
        let heard = heard.get(task).expect("it was heard of");
        heard.saturating_duration_since(*told).as_secs_f64() * 1e3
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    println!(
        "heard by another instance     p50 {:.1} ms   p99 {:.1} ms",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}
