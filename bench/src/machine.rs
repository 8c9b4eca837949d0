//! What was measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use a2ad_proto::Timestamp;
use serde::Serialize;

/// A machine on a day.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor, as it calls itself.
    pub cpu: String,
    /// How many cores.
    pub cores: usize,
    /// The release of Linux.
    pub kernel: String,
    /// The file system of the data.
    pub file_system: String,
    /// The compiler.
    pub rustc: String,
    /// The commit of the sources.
    pub revision: String,
    /// When.
    pub date: String,
}

impl Machine {
    /// This one, today. What cannot be found out is `?`.
    #[must_use]
    pub fn here(data: &Path) -> Self {
        Self {
            cpu: cpu().unwrap_or_else(unknown),
            cores: cores(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |kernel| kernel.trim().to_owned()),
            file_system: file_system(data).unwrap_or_else(unknown),
            rustc: output("rustc", &["--version"]),
            revision: output("git", &["rev-parse", "--short", "HEAD"]),
            date: now()[..10].to_owned(),
        }
    }

    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}, {} cores, Linux {}, {}, {}, commit {}, {}",
            self.cpu,
            self.cores,
            self.kernel,
            self.file_system,
            self.rustc,
            self.revision,
            self.date
        )
    }
}

/// The time, in RFC 3339.
#[must_use]
pub fn now() -> String {
    #[allow(
        clippy::disallowed_methods,
        reason = "the date of a report is that of the machine"
    )]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)).to_string()
}

fn unknown() -> String {
    "?".to_owned()
}

/// All there are, not only those that we may run on.
fn cores() -> usize {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lines = info.lines();
    lines.filter(|line| line.starts_with("processor")).count()
}

fn cpu() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the mount that is nearest above `path`.
fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    mounts
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let said = output.ok().filter(|output| output.status.success());
    said.map_or_else(unknown, |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}
