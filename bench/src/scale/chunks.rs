//! One artifact in very many pieces: what one more event costs when there are many already.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;

use super::{Found, Scale};
use crate::catalogue::a2ad;
use crate::load::{self, LongPlan};
use crate::server::Server;

/// Pieces of an artifact.
const PIECES: [usize; 2] = [1_000, 10_000];
/// Streams at a time, for whatever number of pieces: they share commits.
const CONNECTIONS: usize = 4;

/// A way in which an agent says the pieces.
struct Way {
    name: &'static str,
    /// The pause before each.
    every: &'static str,
    /// How many in all, for whatever size of artifacts.
    pieces: usize,
}

const WAYS: [Way; 2] = [
    Way {
        name: "at once",
        every: "0s",
        pieces: 200_000,
    },
    Way {
        name: "one by one",
        every: "1ms",
        pieces: 40_000,
    },
];

pub(super) fn measure(scale: &Scale<'_>, runtime: &Runtime) -> Result<Vec<Found>> {
    let data = scale.work().join("data").join("chunks");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    let config = data.join("a2ad.yaml");
    fs::write(&config, agents()).context("write the agents")?;
    let server = start(scale, &config, &data)?;
    let mut found = Vec::new();
    for (agent, way) in WAYS.iter().enumerate() {
        for pieces in PIECES {
            let plan = LongPlan {
                target: server.target.at(&format!("/agents/chunks-{agent}")),
                word: format!("pieces-{pieces}"),
                pieces,
                streams: way.pieces / pieces,
                connections: CONNECTIONS,
                pid: server.pid(),
            };
            let name = format!("artifact of {pieces} pieces, {}", way.name);
            let outcome = runtime
                .block_on(load::long(&plan))
                .with_context(|| name.clone())?;
            found.push(Found::new(
                format!("{name}, CPU µs per event"),
                outcome.cpu_us(),
            ));
            let rate = outcome.events as f64 / outcome.time.as_secs_f64();
            found.push(Found::new(format!("{name}, events per second"), rate));
        }
    }
    server.stop()?;
    fs::remove_dir_all(&data)?;
    Ok(found)
}

fn start(scale: &Scale<'_>, config: &Path, data: &Path) -> Result<Server> {
    let binary = &scale.arguments.places.a2ad;
    let mut command = a2ad(binary, config, &data.join("data"), "full");
    let log = scale.work().join("chunks.log");
    Server::start(&mut command, Some(scale.arguments.server_core), &log)
}

/// Written rather than kept: 22,000 lines that say nothing.
fn agents() -> String {
    let mut yaml = "log: {level: warn}\nagents:\n".to_owned();
    for (agent, way) in WAYS.iter().enumerate() {
        let every = way.every;
        yaml.push_str(&format!(
            "  - id: chunks-{agent}\n    script:\n      rules:\n"
        ));
        for pieces in PIECES {
            let head = format!(
                "        - when: {{text: \"pieces-{pieces} *\"}}\n          steps:\n            - wait: 1ms\n            \
                 - artifact:\n                id: answer\n                every: {every}\n                chunks:\n"
            );
            yaml.push_str(&head);
            for number in 0..pieces {
                let _strings_take_everything = writeln!(
                    yaml,
                    "                  - [{{data: {{n: {number}, text: a piece of the answer}}}}]"
                );
            }
            yaml.push_str("            - complete:\n");
        }
    }
    yaml
}
