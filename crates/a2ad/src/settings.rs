//! Flags over environment over file over defaults.

use std::env::VarError;
use std::path::{Path, PathBuf};

use a2ad_server::config::{AuthConfig, Key, ScopeText, Secret, Source, Token, User};
use a2ad_server::{Config, Scope};
use anyhow::Context as _;

use crate::arguments::{Place, Serve};
use crate::failure::{Exit, Failure};

/// Read if nothing else is named and it is there.
const DEFAULT_FILE: &str = "a2ad.yaml";

/// A configuration and where it came from.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) file: Option<PathBuf>,
}

/// Looks up a variable; an empty one counts as not set.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The settings for everything but the address.
pub(crate) fn read(place: &Place) -> Result<Settings, Failure> {
    read_with(&Serve::default(), place, &process_environment)
}

/// The settings for serving.
pub(crate) fn read_to_serve(arguments: &Serve) -> Result<Settings, Failure> {
    // A secret that cannot be read must not pass for none.
    for name in [TOKEN, USERNAME, PASSWORD, API_KEY].concat() {
        if let Err(VarError::NotUnicode(_)) = std::env::var(name) {
            return Err(Failure::usage(format!("{name}: it is not UTF-8")));
        }
    }
    read_with(arguments, &arguments.place, &process_environment)
}

fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn read_with(
    arguments: &Serve,
    place: &Place,
    environment: Environment<'_>,
) -> Result<Settings, Failure> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let file = file(place, &set);
    let mut source = match &file {
        Some(path) => Source::yaml(
            path.display().to_string(),
            read_file(path, "the configuration")?,
        ),
        None => Source::none(),
    };
    if let Some(filter) = set("RUST_LOG") {
        source = source.set(&["log", "level"], filter, "RUST_LOG");
    }
    for path in Config::SETTINGS {
        let name = format!("A2AD_{}", path.join("_").to_uppercase());
        if let Some(value) = set(&name) {
            source = source.set(path, value, name);
        }
    }
    if let Some(folder) = &place.data_dir {
        let folder = folder
            .to_str()
            .ok_or_else(|| Failure::usage("--data-dir: the path is not UTF-8; choose another"))?;
        source = source.set(&["data_dir"], folder, "--data-dir");
    }
    if let Some(listen) = &arguments.listen {
        source = source.set(&["listen"], listen, "--listen");
    }
    if let Some(listen) = &arguments.grpc_listen {
        source = source.set(&["grpc_listen"], listen, "--grpc-listen");
    }
    for (path, name) in HEADER_ALIASES {
        if let Some(value) = set(name) {
            source = source.set(path, value, name);
        }
    }
    if arguments.allow_unauthenticated {
        let path = ["auth", "allow_unauthenticated"];
        source = source.set(&path, "true", "--allow-unauthenticated");
    }
    let mut config = source.read(environment)?;
    if let Some(folder) = file.as_deref().and_then(Path::parent) {
        config.look_in(folder);
    }

    credentials(&mut config.auth, arguments, &set)?;

    if arguments.listen.is_none() && set("A2AD_LISTEN").is_none() {
        if let Some(host) = set("HOST") {
            config.listen.host = host;
        }
        if let Some(port) = set("PORT") {
            config.listen.port = port
                .parse()
                .map_err(|_| Failure::usage(format!("PORT: `{port}` is not a port number")))?;
        }
    }
    if let Some(host) = &arguments.host {
        config.listen.host.clone_from(host);
    }
    // As in a URL or in `listen`, an IPv6 address may stand in brackets.
    let host = &config.listen.host;
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(bare) = bare {
        config.listen.host = bare.to_owned();
    }
    if let Some(port) = arguments.port {
        config.listen.port = port;
    }
    Ok(Settings { config, file })
}

/// Where a secret may stand in the environment: our name first, then those of servers that people come from.
const TOKEN: &[&str] = &[
    "A2AD_TOKEN",
    "IACCODE_A2A_HTTP_TOKEN",
    "SB_SERVE_TOKEN",
    "LECTIC_A2A_TOKEN",
];
const USERNAME: &[&str] = &["A2AD_BASIC_USERNAME", "IACCODE_A2A_BASIC_USERNAME"];
const PASSWORD: &[&str] = &["A2AD_BASIC_PASSWORD", "IACCODE_A2A_BASIC_PASSWORD"];
const API_KEY: &[&str] = &["A2AD_API_KEY", "IACCODE_A2A_API_KEY"];
const HEADER_ALIASES: [(&[&str], &str); 1] =
    [(&["auth", "api_key_header"], "IACCODE_A2A_API_KEY_HEADER")];

/// Adds the credentials that flags and the environment give to those of the file.
fn credentials(
    auth: &mut AuthConfig,
    arguments: &Serve,
    set: Environment<'_>,
) -> Result<(), Failure> {
    let first = |names: &[&'static str]| {
        let mut found = names.iter().filter_map(|name| Some((*name, set(name)?)));
        found.next()
    };
    let from_file = match &arguments.token_file {
        Some(path) => Some((
            "--token-file",
            read_file(path, "the token file")?.trim().to_owned(),
        )),
        None => None,
    };
    let from_flag = arguments.token.clone().map(|token| ("--token", token));
    let token = from_flag.or(from_file).or_else(|| first(TOKEN));
    let secret = |(origin, text): (&str, String)| {
        Secret::new(text).ok_or_else(|| Failure::usage(format!("{origin}: the secret is empty")))
    };
    let name = || "default".parse();
    let agents = || vec![ScopeText(Scope::Agents)];
    if let Some(token) = token {
        auth.tokens.push(Token {
            name: name()?,
            token: secret(token)?,
            scopes: agents(),
        });
    }
    match (first(USERNAME), first(PASSWORD)) {
        (Some((_, user)), Some(password)) => auth.basic.push(User {
            user: user.parse()?,
            password: secret(password)?,
            scopes: agents(),
        }),
        (None, None) => {}
        (Some((name, _)), None) | (None, Some((name, _))) => {
            return Err(Failure::usage(format!(
                "{name}: a user needs both a name and a password"
            )));
        }
    }
    if let Some(key) = first(API_KEY) {
        auth.api_keys.push(Key {
            name: name()?,
            key: secret(key)?,
            scopes: agents(),
        });
    }
    if auth.token_header.is_none() && set("SB_SERVE_TOKEN").is_some() {
        auth.token_header = Some("X-SB-Token".parse()?);
    }
    Ok(())
}

fn file(place: &Place, set: Environment<'_>) -> Option<PathBuf> {
    let named = place.config.clone();
    let named = named.or_else(|| set("A2AD_CONFIG").map(PathBuf::from));
    named.or_else(|| {
        let path = PathBuf::from(DEFAULT_FILE);
        path.exists().then_some(path)
    })
}

fn read_file(path: &Path, what: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {what} {}", path.display()))
        .map_err(|error| Failure::new(Exit::Usage, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(arguments: &Serve, environment: &[(&str, &str)]) -> Result<String, String> {
        let look = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        read_with(arguments, &arguments.place, &look)
            .map(|settings| settings.config.listen.to_string())
            .map_err(|failure| failure.to_string())
    }

    fn flags(listen: Option<&str>, host: Option<&str>, port: Option<u16>) -> Serve {
        Serve {
            listen: listen.map(str::to_owned),
            host: host.map(str::to_owned),
            port,
            ..Serve::default()
        }
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_defaults() {
        let none = flags(None, None, None);
        let ok = |arguments: &Serve, environment: &[(&str, &str)]| {
            listen(arguments, environment).unwrap()
        };
        assert_eq!(ok(&none, &[]), "127.0.0.1:41240");
        assert_eq!(ok(&none, &[("PORT", "80")]), "127.0.0.1:80");
        assert_eq!(ok(&none, &[("HOST", "::1"), ("PORT", "")]), "[::1]:41240");
        let both = [("PORT", "80"), ("A2AD_LISTEN", "10.0.0.1:90")];
        assert_eq!(ok(&none, &both), "10.0.0.1:90");
        assert_eq!(ok(&flags(None, None, Some(0)), &both), "10.0.0.1:0");
        assert_eq!(
            ok(&flags(None, None, Some(1)), &[("HOST", "0.0.0.0")]),
            "0.0.0.0:1"
        );
        assert_eq!(ok(&flags(Some("[::1]:5"), None, None), &both), "[::1]:5");
    }

    #[test]
    fn a_wrong_setting_names_its_origin() {
        let none = flags(None, None, None);
        assert_eq!(
            listen(&none, &[("PORT", "http")]).unwrap_err(),
            "PORT: `http` is not a port number"
        );
        let error = listen(&none, &[("A2AD_DRAIN", "soon")]).unwrap_err();
        assert!(error.starts_with("A2AD_DRAIN: `soon`"), "{error}");
        let error = listen(&flags(Some("here"), None, None), &[]).unwrap_err();
        assert!(error.starts_with("--listen: `here`"), "{error}");
    }

    /// Kubernetes sets these for a service named a2ad.
    #[test]
    fn variables_that_only_look_like_ours_are_left_alone() {
        let environment = [
            ("A2AD_PORT", "tcp://10.0.0.1:41240"),
            ("A2AD_SERVICE_HOST", "10.0.0.1"),
        ];
        let none = flags(None, None, None);
        assert_eq!(listen(&none, &environment).unwrap(), "127.0.0.1:41240");
    }
}
