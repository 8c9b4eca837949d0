//! The same load for a long time: memory has to stay where it is.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::catalogue::{PEERS, Places};
use crate::load::{self, Binding, Case, ListFilter, Plan};
use crate::process::{self, resident_kib};
use crate::server::Server;

/// How long.
#[derive(Clone, Debug, clap::Args)]
pub struct SoakArguments {
    /// Minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The core of the server
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    /// The core of the load
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    #[command(flatten)]
    places: Places,
}

/// One after the other, again and again.
const CASES: [Case; 5] = [Case::Send, Case::Get, Case::Burst, Case::List, Case::Flush];
/// How long each at a time.
const TURN: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 32;
/// Some hundred requests a second: a disk has an end, and full speed is measured elsewhere.
const PAUSE: Duration = Duration::from_millis(40);
/// What memory may grow by, from the second quarter of the run to the last.
const GROWTH_MAX: f64 = 0.1;

/// Runs it; whether memory stayed where it was.
///
/// # Errors
/// When the server does not start, or an answer is wrong.
pub fn soak(arguments: &SoakArguments) -> Result<bool> {
    ensure!(
        arguments.server_core != arguments.load_core,
        "one core cannot be both"
    );
    let time = Duration::try_from_secs_f64(arguments.minutes * 60.0)?;
    process::raise_open_files()?;
    process::pin(arguments.load_core).context("this needs two cores")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let peer = PEERS
        .iter()
        .find(|peer| peer.ours)
        .context("a2ad is there")?;
    let work = &arguments.places.work;
    let data = work.join("data").join("soak");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    let mut command = peer.command(&arguments.places, &data);
    let server = Server::start(
        &mut command,
        Some(arguments.server_core),
        &work.join("soak.log"),
    )?;

    let begin = Instant::now();
    let mut samples = Vec::new();
    let mut answers = 0;
    while begin.elapsed() < time {
        for case in CASES {
            let path = match case {
                Case::Burst | Case::Flush | Case::Sync | Case::Resume => peer.stream_path(),
                Case::Send | Case::Get | Case::List => peer.echo_path(),
            };
            let outcome = runtime.block_on(load::run(&Plan {
                target: server.target.at(path),
                binding: Binding::JsonRpc,
                case,
                connections: CONNECTIONS,
                warm_up: Duration::ZERO,
                time: TURN,
                requests_max: None,
                pause: PAUSE,
                pid: None,
                tasks: None,
                filter: ListFilter::default(),
            }))?;
            ensure!(outcome.errors == 0, "{case:?}: {:?}", outcome.first_errors);
            answers += outcome.latencies.len();
        }
        let resident = resident_kib(server.pid())? as f64 / 1024.0;
        samples.push(resident);
        let database =
            fs::metadata(data.join("a2ad.db")).map_or(0, |file| file.len()) / 1024 / 1024;
        println!(
            "{:>5.1} min  {answers:>8} answers  RSS {resident:>6.1} MiB  database {database} MiB",
            begin.elapsed().as_secs_f64() / 60.0
        );
    }
    server.stop()?;
    fs::remove_dir_all(&data)?;
    let growth = growth(&samples);
    println!(
        "memory grew by {:.1}% from the second quarter to the last",
        growth * 100.0
    );
    Ok(growth <= GROWTH_MAX)
}

/// By how much the mean of the last quarter is above that of the second: the first fills the caches.
fn growth(samples: &[f64]) -> f64 {
    let quarter = samples.len().div_ceil(4);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let second = samples.get(quarter..2 * quarter);
    let last = &samples[samples.len().saturating_sub(quarter)..];
    match second {
        Some(second) if !second.is_empty() => mean(last) / mean(second) - 1.0,
        // Too short to say anything.
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn growth_is_that_after_the_caches_are_full() {
        assert_eq!(growth(&[1.0, 9.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]), 0.0);
        assert!(growth(&[1.0, 1.0, 10.0, 10.0, 11.0, 11.0, 12.0, 12.0]) > 0.19);
        assert_eq!(growth(&[5.0]), 0.0);
        assert_eq!(growth(&[]), 0.0);
    }
}
