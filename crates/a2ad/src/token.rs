//! `a2ad token`: makes tokens, lists them, takes them back.

use a2ad_server::{StoredToken, Tokens};
use serde_json::json;

use crate::arguments::{Place, TokenCommand};
use crate::failure::Failure;
use crate::{settings, tell};

pub(crate) fn run(command: &TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Create {
            place,
            name,
            scopes,
            json,
        } => {
            let name = name.parse()?;
            let scopes = match scopes.as_slice() {
                [] => &["agents".to_owned()],
                scopes => scopes,
            };
            let read = |scope: &String| scope.parse().map(a2ad_server::config::ScopeText);
            let scopes = scopes.iter().map(read).collect::<Result<_, _>>();
            let scopes = scopes.map_err(Failure::usage)?;
            let token = tokens(place)?.create(&name, scopes)?;
            if *json {
                tell(&json!({"name": name.as_str(), "token": token}).to_string());
            } else {
                tell(&token);
                eprintln!(
                    "a2ad: keep it, it is not shown again; a running server takes it within a second if it asks for tokens already, or after a restart"
                );
            }
        }
        TokenCommand::List { place, json } => {
            let all = tokens(place)?.list()?.unwrap_or_default();
            if *json {
                let all: Vec<_> = all.iter().map(for_programs).collect();
                tell(&json!({ "tokens": all }).to_string());
            } else {
                for token in &all {
                    let name = token.name.as_str();
                    tell(&format!(
                        "{name}\t{}\t{}",
                        scopes(token).join(","),
                        token.created
                    ));
                }
            }
        }
        TokenCommand::Revoke { place, name } => tokens(place)?.revoke(name)?,
    }
    Ok(())
}

fn tokens(place: &Place) -> Result<Tokens, Failure> {
    Ok(Tokens::in_folder(&settings::read(place)?.config.data_dir))
}

fn scopes(token: &StoredToken) -> Vec<String> {
    token
        .scopes
        .iter()
        .map(|scope| scope.0.to_string())
        .collect()
}

fn for_programs(token: &StoredToken) -> serde_json::Value {
    json!({
        "name": token.name.as_str(),
        "scopes": scopes(token),
        "created": token.created,
    })
}
