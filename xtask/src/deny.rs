//! Licences, sources and banned crates, by cargo-deny over deny.toml.

use std::path::PathBuf;

use anyhow::Result;

use crate::workspace::{cargo, root, succeed, target_directory};

/// The version that CI uses, so that a new release cannot turn a green build red.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. Advisories are left out: they change without us, and need a network.
pub(crate) fn check() -> Result<()> {
    let mut command = std::process::Command::new(installed()?);
    command.current_dir(root());
    command.args([
        "--locked",
        "--all-features",
        "check",
        "--hide-inclusion-graph",
    ]);
    succeed(command.args(["bans", "licenses", "sources"]))
}

/// cargo-deny below the target folder, built there once. Unoptimised: it builds in a minute
/// instead of three, and has a second of work to do.
fn installed() -> Result<PathBuf> {
    let tools = target_directory()?.join("tools").join(VERSION);
    let program = tools
        .join("bin")
        .join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        println!("installing cargo-deny {VERSION} into {}", tools.display());
        let mut command = cargo();
        command.args(["install", "cargo-deny", "--version", VERSION, "--locked"]);
        command.args(["--debug", "--quiet", "--root"]).arg(&tools);
        command.arg("--target-dir").arg(tools.join("build"));
        succeed(&mut command)?;
        // What was built on the way is of no more use.
        std::fs::remove_dir_all(tools.join("build"))?;
    }
    Ok(program)
}
