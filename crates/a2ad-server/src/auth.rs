//! From what the configuration says of callers to what the edge asks of them.

use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::{
    AgentCard, ApiKeySecurityScheme, HttpAuthSecurityScheme, SecurityRequirement, SecurityScheme,
};
use a2ad_transport::auth::{Auth, Credential, Digest, Kind, Principal};
use tokio::task::spawn_blocking;

use crate::config::{AuthConfig, Challenge, Openness, ScopeText};
use crate::error::StartError;
use crate::tokens::{Mark, StoredToken, Tokens};

/// How often the tokens are looked at for a change.
const LOOK: Duration = Duration::from_secs(1);

/// The door as configured, with the tokens of the data directory, and who looks for those made and taken back since.
///
/// # Errors
/// If those cannot be read.
pub(crate) fn auth(config: &AuthConfig, tokens: Tokens) -> Result<(Auth, Watch), StartError> {
    // Before they are read: what changes meanwhile shows as a change.
    let seen = tokens.mark();
    let stored = tokens.list()?;
    let header = |text: &str| {
        text.parse()
            .map_err(|_| StartError::Header(text.to_owned()))
    };
    let token_header = match &config.token_header {
        Some(name) => Some(header(name.as_str())?),
        None => None,
    };
    let configured = credentials(config, Vec::new());
    for (at, one) in configured.iter().enumerate() {
        let same = |other: &&Credential| (one.kind, one.digest) == (other.kind, other.digest);
        let mut later = configured[at + 1..].iter().filter(same);
        if let Some(other) = later.find(|other| other.principal != one.principal) {
            let name = |it: &Credential| it.principal.owner.as_str().to_owned();
            return Err(StartError::SameSecret(name(one), name(other)));
        }
    }
    let mut auth = Auth::off();
    auth.token_header = token_header;
    auth.api_key_header = header(config.api_key_header.as_str())?;
    auth.challenge = config.challenge == Challenge::Header;
    auth.public_cards = config.card == Openness::Public;
    auth.public_health = config.health == Openness::Public;
    auth.kinds = kinds(config, stored.is_some());
    // A file without tokens had some: who took the last one back did not open the door.
    auth.required = !auth.kinds.is_empty();
    auth.replace(credentials(config, stored.unwrap_or_default()));
    let watch = Watch {
        config: config.clone(),
        tokens,
        seen,
        failed: None,
    };
    Ok((auth, watch))
}

fn kinds(config: &AuthConfig, stored: bool) -> Vec<Kind> {
    [
        (Kind::Bearer, stored || !config.tokens.is_empty()),
        (Kind::Basic, !config.basic.is_empty()),
        (Kind::ApiKey, !config.api_keys.is_empty()),
    ]
    .into_iter()
    .filter_map(|(kind, there)| there.then_some(kind))
    .collect()
}

fn credentials(config: &AuthConfig, stored: Vec<StoredToken>) -> Vec<Credential> {
    let credential = |kind, digest, owner: String, scopes: &[ScopeText]| {
        Some(Credential {
            kind,
            digest,
            principal: Arc::new(Principal {
                owner: owner.parse().ok()?,
                scopes: scopes.iter().map(|scope| scope.0.clone()).collect(),
            }),
        })
    };
    let bearer = config.tokens.iter().filter_map(|it| {
        let digest = Digest::of(it.token.reveal().as_bytes());
        let owner = format!("token:{}", it.name.as_str());
        credential(Kind::Bearer, digest, owner, &it.scopes)
    });
    let basic = config.basic.iter().filter_map(|it| {
        let digest = Digest::of_pair(it.user.as_str(), it.password.reveal());
        let owner = format!("basic:{}", it.user.as_str());
        credential(Kind::Basic, digest, owner, &it.scopes)
    });
    let keys = config.api_keys.iter().filter_map(|it| {
        let digest = Digest::of(it.key.reveal().as_bytes());
        let owner = format!("key:{}", it.name.as_str());
        credential(Kind::ApiKey, digest, owner, &it.scopes)
    });
    let stored = stored.iter().filter_map(|token| token.credential());
    bearer.chain(basic).chain(keys).chain(stored).collect()
}

/// Looks for tokens made and taken back.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    config: AuthConfig,
    tokens: Tokens,
    /// The file of which the credentials are made.
    seen: Option<Mark>,
    /// Why it could not be read when it was last looked at.
    failed: Option<String>,
}

impl Watch {
    /// All credentials, if they have changed. A file that cannot be read is looked at again, even if it does not change:
    /// it may be for want of rights or of open files.
    fn look(&mut self) -> Option<Vec<Credential>> {
        let mark = self.tokens.mark();
        if mark == self.seen {
            return None;
        }
        match self.tokens.list() {
            Ok(stored) => {
                (self.seen, self.failed) = (mark, None);
                Some(credentials(&self.config, stored.unwrap_or_default()))
            }
            Err(error) => {
                let error = error.to_string();
                if self.failed.as_ref() != Some(&error) {
                    tracing::error!(%error, "the tokens cannot be read; those before stay");
                }
                self.failed = Some(error);
                None
            }
        }
    }
}

/// Looks for tokens made and taken back, for as long as the server runs.
pub(crate) async fn watch(mut watch: Watch, auth: Arc<Auth>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let mut looking = watch.clone();
        let looked = spawn_blocking(move || (looking.look(), looking));
        match looked.await {
            Ok((found, looked)) => {
                watch = looked;
                if let Some(credentials) = found {
                    auth.replace(credentials);
                    tracing::info!("the tokens have changed");
                }
            }
            Err(panicked) => tracing::error!(error = %panicked, "looking at the tokens failed"),
        }
    }
}

/// Says in a card how to authenticate, if that is needed.
pub(crate) fn advertise(config: &AuthConfig, auth: &Auth, card: &mut AgentCard) {
    if !auth.required {
        if !card.security_schemes.is_empty() {
            tracing::warn!(
                card = %card.name,
                "the card asks for credentials that nobody here looks at: the proxy before this server has to"
            );
        }
        return;
    }
    let names = &config.scheme_names;
    let http = |scheme: &str| {
        SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
            scheme: scheme.to_owned(),
            ..HttpAuthSecurityScheme::default()
        })
    };
    let header = |name: &str| {
        SecurityScheme::ApiKey(ApiKeySecurityScheme {
            location: "header".to_owned(),
            name: name.to_owned(),
            ..ApiKeySecurityScheme::default()
        })
    };
    let mut schemes = Vec::new();
    for kind in &auth.kinds {
        match kind {
            Kind::Bearer => {
                schemes.push((&names.bearer, http("bearer")));
                if let Some(name) = &config.token_header {
                    schemes.push((&names.token_header, header(name.as_str())));
                }
            }
            Kind::Basic => schemes.push((&names.basic, http("basic"))),
            Kind::ApiKey => schemes.push((&names.api_key, header(config.api_key_header.as_str()))),
        }
    }
    // Any one of them is enough.
    let requirement = |name: &String| SecurityRequirement {
        schemes: [(name.clone(), Default::default())].into(),
    };
    card.security_requirements = schemes.iter().map(|(name, _)| requirement(name)).collect();
    card.security_schemes = schemes
        .into_iter()
        .map(|(name, scheme)| (name.clone(), scheme))
        .collect();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn made(folder: &std::path::Path) -> Tokens {
        let tokens = Tokens::in_folder(folder);
        tokens
            .create(&"alice".parse().unwrap(), Vec::new())
            .unwrap();
        tokens
    }

    fn found(watch: &mut Watch) -> Option<usize> {
        watch.look().map(|credentials| credentials.len())
    }

    #[test]
    fn a_secret_is_one_principals() {
        let read = |tokens: &str| {
            let yaml = format!("auth: {{tokens: [{tokens}]}}\nagents: [{{id: a, echo: }}]");
            let config = crate::config::Source::yaml("t", yaml)
                .read(&|_| None)
                .unwrap();
            let folder = tempfile::tempdir().unwrap();
            auth(&config.auth, Tokens::in_folder(folder.path())).map(drop)
        };
        let error = read("{name: alice, token: hush}, {name: mallory, token: hush}").unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("`token:alice` and `token:mallory` have"),
            "{error}"
        );
        assert!(!error.contains("hush"));
        let scopes = "{name: a, token: hush}, {name: a, token: hush, scopes: [monitor]}";
        assert!(read(scopes).is_err());
        assert!(read("{name: a, token: hush}, {name: a, token: hush}").is_ok());
        assert!(read("{name: a, token: hush}, {name: a, token: shush}").is_ok());
    }

    /// Opening a large database takes a while.
    #[test]
    fn a_token_taken_back_while_the_server_starts_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = made(folder.path());
        let (_, mut watch) = auth(&AuthConfig::default(), tokens.clone()).unwrap();
        assert_eq!(found(&mut watch), None);
        tokens.revoke("alice").unwrap();
        assert_eq!(found(&mut watch), Some(0));
        assert_eq!(found(&mut watch), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_read_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = made(folder.path());
        let (_, mut watch) = auth(&AuthConfig::default(), tokens.clone()).unwrap();
        tokens.revoke("alice").unwrap();
        let file = folder.path().join("tokens.json");
        let good = fs::read(&file).unwrap();
        // The same file at the same time, as if it were not the file that was wrong.
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        let write = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let opened = fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(time).unwrap();
        };
        write(&vec![b'x'; good.len()]);
        assert_eq!(found(&mut watch), None);
        write(&good);
        assert_eq!(found(&mut watch), Some(0));
    }

    /// Tools that copy files keep their times.
    #[test]
    fn another_file_of_the_same_time_and_length_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = made(folder.path());
        let (_, mut watch) = auth(&AuthConfig::default(), tokens).unwrap();
        let (old, new) = (folder.path().join("tokens.json"), folder.path().join("new"));
        let text = fs::read_to_string(&old).unwrap();
        fs::write(&new, text.replace("alice", "carol")).unwrap();
        let opened = fs::File::options().write(true).open(&new).unwrap();
        let time = fs::metadata(&old).unwrap().modified().unwrap();
        opened.set_modified(time).unwrap();
        fs::rename(&new, &old).unwrap();
        assert_eq!(found(&mut watch), Some(1));
    }
}
