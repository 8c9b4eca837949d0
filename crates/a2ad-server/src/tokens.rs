//! Tokens that were made with `a2ad token create`: a file beside the database, with digests only.
//!
//! A file and not the database, because the command has to work while the server runs and holds that.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use a2ad_core::clock::Surroundings;
use a2ad_transport::auth::{Credential, Digest, Kind, Principal};
use serde::{Deserialize, Serialize};

use crate::config::{PrincipalName, ScopeText};

const FILE: &str = "tokens.json";
const LOCK: &str = "tokens.lock";
/// How many random bytes make a token.
const RANDOM: usize = 32;

/// A token as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// Whose it is.
    pub name: PrincipalName,
    /// The SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// What it is good for.
    pub scopes: Vec<ScopeText>,
    /// When it was made.
    pub created: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    tokens: Vec<StoredToken>,
}

/// Why the tokens cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The file cannot be read or written.
    #[error("cannot use {} ({source}): check its permissions", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} is damaged ({what}): restore it, or delete it and make new tokens", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There is one of that name.
    #[error("there is a token `{0}` already: revoke it first, or choose another name")]
    Exists(String),
    /// There is none of that name.
    #[error("there is no token `{0}`; `a2ad token list` shows those there are")]
    Missing(String),
    /// No random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

/// A state of the file: when it was written, how long it is, and which one it is, as every change makes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    modified: SystemTime,
    bytes: u64,
    #[cfg(unix)]
    inode: u64,
}

/// The tokens kept in a data directory.
#[derive(Clone, Debug)]
pub struct Tokens {
    folder: PathBuf,
}

impl Tokens {
    /// Those of this data directory.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Makes a token and gives it. It is not kept, so nobody can ask for it again.
    ///
    /// # Errors
    /// If there is one of that name, or the file cannot be written.
    pub fn create(
        &self,
        name: &PrincipalName,
        scopes: Vec<ScopeText>,
    ) -> Result<String, TokensError> {
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(|_| TokensError::NoRandomness)?;
        let engine = base64::prelude::BASE64_URL_SAFE_NO_PAD;
        let token = format!("a2ad_{}", base64::Engine::encode(&engine, random));
        self.change(|kept| {
            if kept.tokens.iter().any(|known| known.name == *name) {
                return Err(TokensError::Exists(name.as_str().to_owned()));
            }
            kept.tokens.push(StoredToken {
                name: name.clone(),
                sha256: Digest::of(token.as_bytes()).to_hex(),
                scopes,
                created: Surroundings::default().clock.now().to_string(),
            });
            Ok(())
        })?;
        Ok(token)
    }

    /// Takes a token back. A server that runs notices within a second.
    ///
    /// # Errors
    /// If there is none of that name, or the file cannot be written.
    pub fn revoke(&self, name: &str) -> Result<(), TokensError> {
        self.change(|kept| {
            let before = kept.tokens.len();
            kept.tokens.retain(|known| known.name.as_str() != name);
            if kept.tokens.len() == before {
                return Err(TokensError::Missing(name.to_owned()));
            }
            Ok(())
        })
    }

    /// All that there are; `None` if there is no file, and so never was one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self) -> Result<Option<Vec<StoredToken>>, TokensError> {
        let path = self.path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => return Err(TokensError::Io { path, source }),
        };
        let damaged = |what: String| TokensError::Damaged {
            path: path.clone(),
            what,
        };
        let kept: Kept = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        for token in &kept.tokens {
            if Digest::from_hex(&token.sha256).is_none() {
                return Err(damaged(format!(
                    "the digest of `{}` is none",
                    token.name.as_str()
                )));
            }
        }
        Ok(Some(kept.tokens))
    }

    /// What tells whether the file has changed; none if there is none.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let about = fs::metadata(self.path()).ok()?;
        Some(Mark {
            modified: about.modified().ok()?,
            bytes: about.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&about),
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Reads, changes and writes, with nobody else in between, and never leaves half a file.
    fn change(
        &self,
        change: impl FnOnce(&mut Kept) -> Result<(), TokensError>,
    ) -> Result<(), TokensError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TokensError::Io { path, source }
        };
        crate::database::create_private(&self.folder).map_err(failed(&self.folder))?;
        let lock_path = self.folder.join(LOCK);
        let lock = private_file().create(true).open(&lock_path);
        let lock = lock.map_err(failed(&lock_path))?;
        lock.lock().map_err(failed(&lock_path))?;
        let mut kept = Kept {
            tokens: self.list()?.unwrap_or_default(),
        };
        change(&mut kept)?;
        let new = self.folder.join("tokens.json.new");
        let write = || -> io::Result<()> {
            // Left by one that was cut off.
            if let Err(error) = fs::remove_file(&new)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            let mut file = private_file().create_new(true).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&kept)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, self.path())?;
            // Or a token taken back could return after a power cut.
            #[cfg(unix)]
            fs::File::open(&self.folder)?.sync_all()?;
            Ok(())
        };
        write().map_err(failed(&self.path()))
    }
}

/// Whether there is no file, be it that its folder is none.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// How to make a file that only its owner can look into.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl StoredToken {
    pub(crate) fn credential(&self) -> Option<Credential> {
        Some(Credential {
            kind: Kind::Bearer,
            digest: Digest::from_hex(&self.sha256)?,
            principal: Arc::new(Principal {
                owner: format!("token:{}", self.name.as_str()).parse().ok()?,
                scopes: self.scopes.iter().map(|scope| scope.0.clone()).collect(),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2ad_transport::auth::Scope;

    fn name(text: &str) -> PrincipalName {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_given_once_and_kept_as_a_digest() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let tokens = Tokens::in_folder(&data);
        assert!(tokens.list().unwrap().is_none());
        let scopes = vec![ScopeText(Scope::Agents)];
        let token = tokens.create(&name("alice"), scopes.clone()).unwrap();
        assert!(token.starts_with("a2ad_") && token.len() > 40);
        let text = fs::read_to_string(data.join(FILE)).unwrap();
        assert!(!text.contains(&token[5..]), "{text}");
        let kept = tokens.list().unwrap().unwrap();
        assert_eq!(kept[0].sha256, Digest::of(token.as_bytes()).to_hex());
        assert_eq!(
            kept[0].credential().unwrap().principal.owner.as_str(),
            "token:alice"
        );
        let again = tokens.create(&name("alice"), scopes);
        assert!(matches!(again, Err(TokensError::Exists(_))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            for (path, mode) in [(data.clone(), 0o700), (data.join(FILE), 0o600)] {
                let have = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                assert_eq!(have, mode, "{}", path.display());
            }
        }
    }

    #[test]
    fn the_last_token_revoked_leaves_an_empty_file_and_not_none() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        tokens.create(&name("a"), Vec::new()).unwrap();
        assert!(matches!(tokens.revoke("b"), Err(TokensError::Missing(_))));
        tokens.revoke("a").unwrap();
        assert_eq!(tokens.list().unwrap().map(|all| all.len()), Some(0));
    }

    #[test]
    fn a_damaged_file_is_said_to_be_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        for text in [
            "",
            "{",
            r#"{"tokens":[{"name":"a","sha256":"0","scopes":[],"created":""}]}"#,
        ] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert!(
                matches!(tokens.list(), Err(TokensError::Damaged { .. })),
                "{text}"
            );
            let made = tokens.create(&name("b"), Vec::new());
            assert!(made.is_err());
            assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), text);
        }
    }
}
