//! Writes transcripts while conversations go on: after the commits, and beside all that matters more.

use std::io;
use std::time::Duration;

use a2ad_core::engine::{Engine, Rested, Resting};
use a2ad_proto::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::files::Folder;

/// How far back a start looks: what was being committed when the position was noted may have come
/// to rest a little before.
const LOOK_BACK_MS: i64 = 60_000;
/// How often a file that cannot be written is tried, and how long it is waited in between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is noted how far they are, at most. What is done again at a start changes nothing.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Follows the engine until it stops. Whatever goes wrong here is logged, and nobody waits for it.
pub(crate) async fn write_transcripts(engine: Engine, folder: Folder) {
    let noted = folder.position();
    let from = noted.as_millis().saturating_sub(LOOK_BACK_MS).max(0);
    let mut resting = engine.follow_rested(Timestamp::from_millis(from));
    let mut noted_at: Option<Instant> = None;
    loop {
        match resting.next().await {
            Some(Ok(batch)) => {
                for rested in batch {
                    put(&folder, rested).await;
                }
                if noted_at.is_none_or(|at| at.elapsed() >= NOTE_EVERY) {
                    note(&folder, &resting).await;
                    noted_at = Some(Instant::now());
                }
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "transcripts have to wait");
                tokio::time::sleep(PAUSE).await;
            }
            None => return,
        }
    }
}

async fn put(folder: &Folder, rested: Rested) {
    for attempt in 1..=TRIES {
        let (folder, one) = (folder.clone(), rested.clone());
        match spawn_blocking(move || folder.put(&one)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) if attempt == TRIES || is_refusal(&error) => {
                let task = &rested.task.id;
                tracing::error!(%task, %error, "a transcript lacks a turn");
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a transcript cannot be written yet");
                tokio::time::sleep(PAUSE).await;
            }
            Err(panicked) => {
                tracing::error!(%panicked, "a bug kept a transcript from being written");
                return;
            }
        }
    }
}

/// What does not become better by waiting.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}

async fn note(folder: &Folder, resting: &Resting) {
    let Some(at) = resting.sure_until() else {
        return;
    };
    let folder = folder.clone();
    match spawn_blocking(move || folder.note(at)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "how far transcripts are could not be noted"),
        Err(panicked) => tracing::error!(%panicked, "a bug kept a position from being noted"),
    }
}
