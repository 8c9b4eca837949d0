//! How much later a frame comes at an instance that does not run the task.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;
use tokio::time::timeout;

use crate::histogram::Histogram;
use crate::load::{Follower, Target};

/// Tasks that are followed.
const TASKS: usize = 20;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follows tasks of an agent that says a piece now and then, where they run and elsewhere.
pub(super) async fn follow(at: &Target, other: &Target) -> Result<Histogram> {
    let mut late = Histogram::default();
    for _ in 0..TASKS {
        let one = async {
            let (mut here, task) = Follower::send(at, "tick").await?;
            let mut there = Follower::subscribe(other, &task).await?;
            let (here, there) = tokio::try_join!(arrivals(&mut here), arrivals(&mut there))?;
            compare(&here, &there, &mut late)
        };
        timeout(PATIENCE, one).await.context("follow a task")??;
    }
    Ok(late)
}

/// When each frame came, by its number; without those that were there when the stream opened.
async fn arrivals(stream: &mut Follower) -> Result<BTreeMap<u64, Instant>> {
    let mut arrivals = BTreeMap::new();
    let mut body = Vec::new();
    let mut opened = false;
    loop {
        body.clear();
        let more = stream.read(&mut body).await?;
        let now = Instant::now();
        for at in memmem::find_iter(&body, b"id: ") {
            let digits = body[at + 4..].split(|byte| !byte.is_ascii_digit()).next();
            let number = std::str::from_utf8(digits.unwrap_or_default())?;
            let number: u64 = number.parse().context("the number of a frame")?;
            if opened {
                arrivals.insert(number, now);
            }
        }
        opened = true;
        if !more {
            return Ok(arrivals);
        }
    }
}

fn compare(
    here: &BTreeMap<u64, Instant>,
    there: &BTreeMap<u64, Instant>,
    late: &mut Histogram,
) -> Result<()> {
    let both = here
        .iter()
        .filter_map(|(number, at)| Some((at, there.get(number)?)));
    let mut count = 0;
    for (here, there) in both {
        late.record(there.saturating_duration_since(*here));
        count += 1;
    }
    ensure!(count > 10, "only {count} frames came to both");
    Ok(())
}
