//! What does not show in a small store or a short run: a2ad alone, with very many tasks, pieces, streams.

mod chunks;
mod soak;
mod store;
mod stored;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

pub use soak::{SoakArguments, soak};

use crate::catalogue::{PEERS, Places};
use crate::load::{self, IdlePlan};
use crate::machine::Machine;
use crate::server::Server;
use crate::table::{Table, number};
use crate::{process, record};
use store::Store;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct ScaleArguments {
    /// Tasks in the stores
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    tasks: Vec<usize>,
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// Streams that are held open
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Seconds that count, per operation
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// A look rather than a measurement: a store of 10,000 tasks, a thousand streams, half a second per operation
    #[arg(long)]
    quick: bool,
    /// Puts the tables into docs/performance.md
    #[arg(long)]
    record: bool,
    /// The core of the server
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    /// The core of the load
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    #[command(flatten)]
    places: Places,
}

/// A part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Operations on stores with very many tasks.
    Stores,
    /// Artifacts in very many pieces.
    Chunks,
    /// Very many idle streams.
    Streams,
}

/// A number with its name.
#[derive(Clone, Debug, Serialize)]
struct Found {
    name: String,
    value: f64,
}

impl Found {
    fn new(name: impl Into<String>, value: f64) -> Self {
        let name = name.into();
        println!("  {name}: {}", number(Some(value)));
        Self { name, value }
    }
}

/// A run with its arguments.
struct Scale<'a> {
    arguments: &'a ScaleArguments,
    time: Duration,
}

impl Scale<'_> {
    fn work(&self) -> &Path {
        &self.arguments.places.work
    }

    fn time(&self) -> Duration {
        self.time
    }

    fn warm_up(&self) -> Duration {
        self.time / 4
    }

    fn does(&self, part: Part) -> bool {
        self.arguments.only.is_empty() || self.arguments.only.contains(&part)
    }

    fn tasks(&self) -> &[usize] {
        if self.arguments.quick {
            &[10_000]
        } else {
            &self.arguments.tasks
        }
    }
}

/// Runs it.
///
/// # Errors
/// When a server does not start, or an answer is wrong.
pub fn scale(arguments: &ScaleArguments) -> Result<bool> {
    ensure!(
        arguments.server_core != arguments.load_core,
        "one core cannot be both"
    );
    let seconds = if arguments.quick {
        0.5
    } else {
        arguments.seconds
    };
    let scale = Scale {
        arguments,
        time: Duration::try_from_secs_f64(seconds)?,
    };
    process::raise_open_files()?;
    process::pin(arguments.load_core).context("this needs two cores")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    fs::create_dir_all(scale.work())?;
    let machine = Machine::here(scale.work());
    println!("{}", machine.line());

    let mut stores = Vec::new();
    if scale.does(Part::Stores) {
        for &tasks in scale.tasks() {
            let store = Store::of(&scale, tasks, &runtime)?;
            println!("{tasks} tasks");
            stores.push((tasks, stored::measure(&scale, &store, &runtime)?));
        }
    }
    let mut others = Vec::new();
    if scale.does(Part::Chunks) {
        println!("pieces");
        others.extend(chunks::measure(&scale, &runtime)?);
    }
    if scale.does(Part::Streams) {
        println!("streams");
        others.extend(streams(&scale, &runtime)?);
    }
    let tables = tables(&stores, &others);
    println!("\n{tables}");
    let json = json!({"machine": machine, "stores": stores, "others": others});
    let path = scale.work().join("scale.json");
    fs::write(&path, serde_json::to_vec_pretty(&json)?)?;
    println!("written: {}", path.display());
    if arguments.record {
        let docs = arguments.places.sources.with_file_name("docs");
        let text = format!("{}\n\n{tables}", machine.line());
        record::record(&docs.join("performance.md"), "scale", &text)?;
    }
    Ok(true)
}

/// Streams on which nothing happens, and then one event to all of them.
fn streams(scale: &Scale<'_>, runtime: &Runtime) -> Result<Vec<Found>> {
    let peer = PEERS
        .iter()
        .find(|peer| peer.ours)
        .context("a2ad is there")?;
    let data = scale.work().join("data").join("streams");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    let log = scale.work().join("streams.log");
    let mut command = peer.command(&scale.arguments.places, &data);
    let server = Server::start(&mut command, Some(scale.arguments.server_core), &log)?;
    let streams = if scale.arguments.quick {
        1000
    } else {
        scale.arguments.streams
    };
    let outcome = runtime.block_on(load::idle(&IdlePlan {
        target: server.target.at(peer.stream_path()),
        streams,
        pid: server.pid(),
        settle: scale.warm_up() * 4,
        cancels: true,
    }))?;
    let mut found = vec![
        Found::new(
            format!("{streams} idle streams, KiB each"),
            outcome.kib_each(),
        ),
        Found::new("RSS with them, MiB", outcome.after_kib as f64 / 1024.0),
    ];
    if let Some(arrivals) = &outcome.arrivals {
        let milliseconds = |share| arrivals.quantile(share).as_secs_f64() * 1e3;
        found.push(Found::new("one event to all, p50 ms", milliseconds(0.5)));
        found.push(Found::new("one event to all, p99 ms", milliseconds(0.99)));
    }
    server.stop()?;
    fs::remove_dir_all(&data)?;
    Ok(found)
}

fn tables(stores: &[(usize, Vec<Found>)], others: &[Found]) -> String {
    let mut text = String::new();
    if let Some((_, first)) = stores.first() {
        let sizes: Vec<String> = stores
            .iter()
            .map(|(tasks, _)| number(Some(*tasks as f64)))
            .collect();
        let head: Vec<&str> = std::iter::once("tasks stored")
            .chain(sizes.iter().map(String::as_str))
            .collect();
        let mut table = Table::new(&head);
        for Found { name, .. } in first {
            let of = |found: &[Found]| found.iter().find(|it| it.name == *name).map(|it| it.value);
            let values = stores.iter().map(|(_, found)| number(of(found)));
            table.row(
                std::iter::once(name.clone())
                    .chain(values)
                    .collect::<Vec<_>>(),
            );
        }
        text.push_str(&format!("{table}\n"));
    }
    if !others.is_empty() {
        let mut table = Table::new(&["what", "value"]);
        for found in others {
            table.row([found.name.clone(), number(Some(found.value))]);
        }
        text.push_str(&format!("{table}\n"));
    }
    text
}
