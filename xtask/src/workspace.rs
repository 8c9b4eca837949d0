//! Finding our way around the workspace, and running programs in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The folder of the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The cargo that runs us, in the workspace's folder.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Runs a command with our terminal; anything but success is an error.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("start {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it writes to its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start {shown}"))?;
    if !done.status.success() {
        bail!("{shown}: {}", done.status);
    }
    String::from_utf8(done.stdout).with_context(|| format!("read the output of {shown}"))
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words: Vec<_> = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

/// What `cargo metadata` says of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    serde_json::from_str(&output(&mut command)?).context("read cargo's metadata")
}

/// Where cargo builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str();
    path.map(PathBuf::from)
        .context("cargo's metadata names no target directory")
}
