//! Measuring a2ad beside its peers: `cargo xtask bench`.
//!
//! Everything is built as it is published, what the peers in other languages need is installed below the target
//! folder, and then `a2ad-bench` does the rest; bench/README.md says how to read what it tells.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::interop::node_packages;
use crate::postgres;
use crate::python::Environment;
use crate::workspace::{cargo, root, succeed, target_directory};

/// What is published, and so what is measured.
const PROFILE: &str = "dist";

/// Runs `a2ad-bench` with these arguments; without any, its comparison of all servers.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let target = target_directory()?;
    let mut words = arguments.to_vec();
    // A flag alone is one of the comparison.
    if words.first().is_none_or(|first| first.starts_with('-')) {
        words.insert(0, "run");
    }
    // Apart from each other, so that a2ad has exactly the features that it is published with.
    build("a2ad")?;
    build("a2ad-bench")?;
    let mut command = Command::new(target.join(PROFILE).join("a2ad-bench"));
    command.args(&words).current_dir(root());
    match words.first() {
        Some(&"run") => add_peers(&mut command, &target, &words)?,
        Some(&("scale" | "soak")) => add_places(&mut command, &target),
        Some(&"cluster") => {
            postgres::install()?;
            add_places(&mut command, &target);
        }
        _ => {}
    }
    succeed(&mut command)
}

fn build(package: &str) -> Result<()> {
    let mut command = cargo();
    command.args(["build", "--locked", "--profile", PROFILE]);
    succeed(command.args(["--package", package]))
}

fn add_places(command: &mut Command, target: &Path) {
    command.arg("--a2ad").arg(target.join(PROFILE).join("a2ad"));
    command.arg("--sources").arg(root().join("bench"));
    command.arg("--work").arg(target.join("bench"));
}

/// Builds or installs the peers, but not those of another language if they are not asked for.
fn add_peers(command: &mut Command, target: &Path, arguments: &[&str]) -> Result<()> {
    add_places(command, target);
    let peers = target.join("peers");
    let mut build = cargo();
    build.current_dir(root().join("bench/peers/rust"));
    build.args(["build", "--locked", "--profile", PROFILE, "--target-dir"]);
    succeed(build.arg(&peers))?;
    command.arg("--peers").arg(peers.join(PROFILE));

    let only = arguments
        .iter()
        .skip_while(|word| **word != "--only")
        .nth(1);
    let asked = |name| only.is_none_or(|only| only.split(',').any(|it| it == name));
    let environment = Environment::bench(&target.join("tools"));
    if asked("python") {
        environment.install()?;
        let python = environment.python();
        command.arg("--python").arg(python.get_program());
        for (name, value) in python.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
    }
    if asked("js") {
        let folder = target.join("bench").join("js");
        let sources = root().join("bench/peers/js");
        let node = node_packages(&environment, &sources, &folder, Some("server.mjs"))?;
        command.arg("--node").arg(node).arg("--js").arg(folder);
    }
    Ok(())
}
