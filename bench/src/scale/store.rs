//! Stores with very many tasks. They are filled once, over the wire, and copied for each use.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;

use super::Scale;
use crate::catalogue::a2ad;
use crate::load::{Made, Making, Target};
use crate::server::Server;

/// Who owns most tasks, and who a tenth of them; the tokens of `agents/scale.yaml`.
pub(super) const MANY: &str = "bench-of-many";
pub(super) const FEW: &str = "bench-of-few";
/// The agent of most tasks, and that of a few.
pub(super) const LARGE_AGENT: &str = "/agents/mixed";
pub(super) const SMALL_AGENT: &str = "/agents/echo";
/// A context with a few tasks.
pub(super) const CONTEXT: &str = "bench-context";

/// Tasks of each rare kind: in the context, in another state, of the small agent.
const RARE: usize = 200;
/// In so many turns, so that what is rare is spread over the store.
const SLICES: usize = 10;
/// Connections that fill it.
const FILLERS: usize = 256;
/// Tasks that are remembered, to ask for them later.
const SAMPLE: usize = 20_000;

/// A store that was filled.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) tasks: usize,
    folder: PathBuf,
}

impl Store {
    /// The one with so many tasks; fills it if it is not there.
    pub(super) fn of(scale: &Scale<'_>, tasks: usize, runtime: &Runtime) -> Result<Self> {
        ensure!(
            tasks >= 10_000,
            "a store of fewer than 10,000 tasks shows nothing"
        );
        let folder = scale.work().join("stores").join(tasks.to_string());
        let store = Self { tasks, folder };
        if !store.sample_path().exists() {
            println!("filling a store with {tasks} tasks");
            store.fill(scale, runtime).context("fill the store")?;
        }
        Ok(store)
    }

    /// Tasks of the context, in the rare state, of the small agent.
    pub(super) fn rare(&self) -> u64 {
        RARE as u64
    }

    /// Tasks of the small owner.
    pub(super) fn few(&self) -> u64 {
        (self.tasks / 10) as u64
    }

    /// Tasks of the large owner at the large agent.
    pub(super) fn many(&self) -> u64 {
        (self.tasks - RARE) as u64 - self.few()
    }

    /// Those of them that have completed.
    pub(super) fn completed(&self) -> u64 {
        self.many() - self.rare()
    }

    /// What the database takes for each task.
    pub(super) fn bytes_each(&self) -> Result<f64> {
        let size = fs::metadata(self.data().join("a2ad.db"))?.len();
        Ok(size as f64 / self.tasks as f64)
    }

    /// Makes `to` a copy of it.
    pub(super) fn copy(&self, to: &Path) -> Result<()> {
        if to.exists() {
            fs::remove_dir_all(to).with_context(|| format!("remove {}", to.display()))?;
        }
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(self.data())? {
            let from = entry?.path();
            let name = from.file_name().context("a file has a name")?;
            let copy = to.join(name);
            // Where the file system can share blocks, this does.
            fs::copy(&from, &copy).with_context(|| format!("copy {}", from.display()))?;
            // Else the first sync of the server would wait for all of it.
            File::open(&copy)?.sync_all()?;
        }
        Ok(())
    }

    /// Some tasks of the large owner, from all over the store.
    pub(super) fn sample(&self) -> Result<Vec<Made>> {
        let path = self.sample_path();
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let made = text.lines().filter_map(|line| {
            let (id, mark) = line.split_once(' ')?;
            Some(Made {
                id: id.to_owned(),
                mark: mark.to_owned(),
            })
        });
        Ok(made.collect())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Written last, and so the sign that the store is whole.
    fn sample_path(&self) -> PathBuf {
        self.folder.join("sample.txt")
    }

    fn fill(&self, scale: &Scale<'_>, runtime: &Runtime) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(self.data())?;
        let server = scale.start(&self.data(), "os")?;
        let making = |path: &str, token: &str, count: u64| Making {
            target: Target {
                token: Some(token.to_owned()),
                ..server.target.at(path)
            },
            word: "echo",
            streams: false,
            context_id: None,
            count: count as usize / SLICES,
            connections: FILLERS,
        };
        let most = self.completed() - self.rare();
        let mut sample = String::new();
        for slice in 1..=SLICES {
            let in_context = Making {
                context_id: Some(CONTEXT.to_owned()),
                ..making(LARGE_AGENT, MANY, self.rare())
            };
            let asking = Making {
                word: "ask",
                ..making(LARGE_AGENT, MANY, self.rare())
            };
            let others = [
                making(LARGE_AGENT, FEW, self.few()),
                making(SMALL_AGENT, MANY, self.rare()),
                in_context,
                asking,
            ];
            let most = making(LARGE_AGENT, MANY, most);
            let made = runtime.block_on(most.make())?;
            let every = (made.len() * SLICES / SAMPLE).max(1);
            for Made { id, mark } in made.iter().step_by(every) {
                sample.push_str(&format!("{id} {mark}\n"));
            }
            for other in others {
                runtime.block_on(other.make())?;
            }
            println!("  {}%", slice * 100 / SLICES);
        }
        server.stop()?;
        fs::write(self.sample_path(), sample)?;
        Ok(())
    }
}

/// Starts a2ad with one of these stores.
impl Scale<'_> {
    pub(super) fn start(&self, data: &Path, durability: &str) -> Result<Server> {
        let places = &self.arguments.places;
        let mut command = a2ad(&places.a2ad, &places.agents("scale"), data, durability);
        let log = self.work().join("scale.log");
        Server::start(&mut command, Some(self.arguments.server_core), &log)
    }
}
