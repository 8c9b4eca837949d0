//! What the log says when the server is up.

use std::net::SocketAddr;

use a2ad_proto::AgentId;
use a2ad_transport::auth::{Auth, Kind};

/// Says where the server is, where the cards of its agents are, and who gets in. `url` is where clients reach it.
pub(crate) fn announce(addr: SocketAddr, url: &str, agents: &[AgentId], auth: &Auth) {
    let count = agents.len();
    tracing::info!("a2ad A2A server running on http://{addr} ({count} agent(s))");
    for agent in agents {
        tracing::info!("  - {url}/agents/{agent}/.well-known/agent-card.json");
    }
    tracing::info!("Auth: {}", who_gets_in(auth));
}

fn who_gets_in(auth: &Auth) -> String {
    if !auth.required {
        return "none; whoever can reach this address can use the agents".to_owned();
    }
    let name = |kind: &Kind| match kind {
        Kind::Bearer => "bearer token",
        Kind::Basic => "user and password",
        Kind::ApiKey => "API key",
    };
    let kinds: Vec<&str> = auth.kinds.iter().map(name).collect();
    let open: &[&str] = match (auth.public_cards, auth.public_health) {
        (true, true) => &["agent cards", "health"],
        (true, false) => &["agent cards"],
        (false, true) => &["health"],
        (false, false) => &[],
    };
    let but = match open {
        [] => String::new(),
        open => format!(", but not for {}", open.join(" and ")),
    };
    format!("{} required{but}", kinds.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_03_it_is_said_who_gets_in() {
        let mut auth = Auth::off();
        assert!(who_gets_in(&auth).starts_with("none; "));
        auth.required = true;
        auth.kinds = vec![Kind::Bearer];
        assert_eq!(
            who_gets_in(&auth),
            "bearer token required, but not for agent cards and health"
        );
        auth.kinds.push(Kind::ApiKey);
        auth.public_health = false;
        auth.public_cards = false;
        assert_eq!(who_gets_in(&auth), "bearer token or API key required");
    }
}
