//! Transcripts as files: where each is, and how it gets its next turn.
//!
//! A file is replaced as a whole by one that has a turn more, so that whoever reads it, and whatever
//! crashes, sees whole turns only. Folders and files are for their owner alone, and a link in the
//! place of a folder is refused: it could lead anywhere.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use a2ad_core::engine::Rested;
use a2ad_core::keys::{Owner, first_16, uuid_text};
use a2ad_core::transcript;
use a2ad_proto::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::database::create_private;

/// Says up to when the files have everything.
const POSITION: &str = ".position";

/// The transcripts of a server that runs in some directory.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder in `dir` for servers that run in `workspace`.
    ///
    /// # Errors
    /// If it cannot be made, or is not a folder of its own.
    pub(crate) fn open(dir: &Path, workspace: &Path) -> io::Result<Self> {
        enter(dir)?;
        let root = dir.join(workspace_key(workspace));
        enter(&root)?;
        Ok(Self { root })
    }

    /// Up to when the files have everything, as far as that was noted.
    pub(crate) fn position(&self) -> Timestamp {
        let noted = fs::read_to_string(self.root.join(POSITION)).ok();
        let noted = noted.and_then(|text| text.trim().parse().ok());
        Timestamp::from_millis(noted.unwrap_or(0))
    }

    /// Notes that the files have everything up to `at`.
    pub(crate) fn note(&self, at: Timestamp) -> io::Result<()> {
        let text = format!("{}\n", at.as_millis());
        replace(&self.root, POSITION, text.as_bytes())
    }

    /// Puts a task into the file of its conversation, unless it is there.
    pub(crate) fn put(&self, rested: &Rested) -> io::Result<()> {
        let Rested {
            identity,
            task,
            version,
        } = rested;
        let agent = &identity.scope.agent;
        let mut folder = self.root.join(file_name(agent.as_str()));
        enter(&folder)?;
        // No conversation's file begins with this character.
        if identity.scope.owner != Owner::anonymous() {
            folder.push(format!("@{}", file_name(identity.scope.owner.as_str())));
            enter(&folder)?;
        }
        let name = format!("{}.md", file_name(identity.context_id.as_str()));
        let known = read(&folder.join(&name))?;
        let known = known.unwrap_or_else(|| transcript::header(agent, &identity.context_id));
        match transcript::with_task(&known, agent, task, *version) {
            Some(text) => replace(&folder, &name, text.as_bytes()),
            None => Ok(()),
        }
    }
}

/// What stands for a directory: servers that run elsewhere have other transcripts.
fn workspace_key(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    uuid_text(u128::from_be_bytes(first_16(&digest))).replace('-', "")
}

/// Makes sure that there is a folder, and that it is one.
fn enter(folder: &Path) -> io::Result<()> {
    let is_folder = |folder: &Path| -> io::Result<()> {
        if fs::symlink_metadata(folder)?.file_type().is_dir() {
            return Ok(());
        }
        let what = format!(
            "{} is not a folder, or only a link to one",
            folder.display()
        );
        Err(io::Error::new(io::ErrorKind::NotADirectory, what))
    };
    match is_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private(folder)?;
            is_folder(folder)
        }
        known => known,
    }
}

/// What a file holds, if there is one. A link is refused.
fn read(path: &Path) -> io::Result<Option<String>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // Not to wait for whoever should write into a pipe that somebody has put there.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = flags.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.cast_signed());
    }
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        let what = format!("{} is not a file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Replaces a file by one with these bytes: it has the old ones or the new ones, whatever happens.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let written = folder.join(format!(".{}-{unique}.tmp", std::process::id()));
    let result = write(&written, bytes).and_then(|()| {
        fs::rename(&written, folder.join(name))?;
        File::open(folder)?.sync_all()
    });
    if result.is_err() {
        let _absent = fs::remove_file(&written);
    }
    result
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = match options.open(path) {
        // Left by a process of the same number, which is gone.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)?
        }
        opened => opened?,
    };
    file.write_all(bytes)?;
    file.sync_all()
}

/// The longest name that is left readable.
const READABLE_MAX: usize = 100;

/// An id as the name of a file: readable if it is harmless everywhere, else encoded. No two ids have
/// the same name, also where large and small letters are one.
fn file_name(id: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let begins = |id: &str| id.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_plain = id.len() <= READABLE_MAX
        && id.chars().all(plain)
        && begins(id)
        && !id.ends_with('.')
        && !is_device(id);
    if is_plain {
        return id.to_owned();
    }
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect::<String>()
    };
    if id.len() <= READABLE_MAX {
        format!("a2aid~{}", hex(id.as_bytes()))
    } else {
        format!("a2aid~~{}", hex(&Sha256::digest(id.as_bytes())))
    }
}

/// Names that mean devices on some systems, whatever follows a dot.
fn is_device(id: &str) -> bool {
    let stem = id.split('.').next().unwrap_or_default();
    let numbered = |name: &str| {
        let digit = stem.strip_prefix(name);
        digit.is_some_and(|digit| digit.len() == 1 && digit.bytes().all(|it| it.is_ascii_digit()))
    };
    ["con", "prn", "aux", "nul"].contains(&stem) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests;
