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
use crate::tokens::Tokens;

/// How often the tokens are looked at for a change.
const LOOK: Duration = Duration::from_secs(1);

/// The door as configured, with the tokens of the data directory.
///
/// # Errors
/// If those cannot be read.
pub(crate) fn auth(config: &AuthConfig, tokens: &Tokens) -> Result<Auth, StartError> {
    let stored = tokens.list()?;
    let header = |text: &str| {
        text.parse()
            .map_err(|_| StartError::Header(text.to_owned()))
    };
    let token_header = match &config.token_header {
        Some(name) => Some(header(name.as_str())?),
        None => None,
    };
    let mut auth = Auth::off();
    auth.token_header = token_header;
    auth.api_key_header = header(config.api_key_header.as_str())?;
    auth.challenge = config.challenge == Challenge::Header;
    auth.public_cards = config.card == Openness::Public;
    auth.public_health = config.health == Openness::Public;
    auth.kinds = kinds(config, stored.is_some());
    // A file without tokens had some: who took the last one back did not open the door.
    auth.required = !auth.kinds.is_empty();
    auth.replace(credentials(config, tokens)?);
    Ok(auth)
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

fn credentials(config: &AuthConfig, tokens: &Tokens) -> Result<Vec<Credential>, StartError> {
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
    let stored = tokens.list()?.unwrap_or_default();
    let stored = stored.iter().filter_map(|token| token.credential());
    Ok(bearer.chain(basic).chain(keys).chain(stored).collect())
}

/// Looks for tokens made and taken back, for as long as the server runs.
pub(crate) async fn watch(config: AuthConfig, tokens: Tokens, auth: Arc<Auth>) {
    let mut seen = tokens.mark();
    loop {
        tokio::time::sleep(LOOK).await;
        let (config, tokens) = (config.clone(), tokens.clone());
        let last = seen;
        let looked = spawn_blocking(move || {
            let mark = tokens.mark();
            (mark != last).then(|| (mark, credentials(&config, &tokens)))
        });
        match looked.await {
            Ok(Some((mark, Ok(credentials)))) => {
                seen = mark;
                auth.replace(credentials);
                tracing::info!("the tokens have changed");
            }
            Ok(Some((mark, Err(error)))) => {
                seen = mark;
                tracing::error!(%error, "the tokens cannot be read; those before stay");
            }
            Ok(None) => {}
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
