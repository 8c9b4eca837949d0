//! What a sync costs right now. It varies tenfold with what else the machine does, and with it every durable number.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::histogram::Histogram;

/// What is written between syncs: a page.
const WRITTEN: usize = 4096;

/// Appends and syncs for so long, in a file of its own, and says what a sync took in the middle.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn sync_time(folder: &Path, time: Duration) -> Result<Duration> {
    let path = folder.join("sync-control");
    let mut file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
    let page = [0x5a; WRITTEN];
    let mut took = Histogram::default();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let begin = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        took.record(begin.elapsed());
    }
    fs::remove_file(&path)?;
    Ok(took.quantile(0.5))
}
