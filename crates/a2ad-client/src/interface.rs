//! Which of a card's interfaces we can use, in which order, and which of them may see our credentials.

use std::fmt;

use a2ad_proto::{AgentCard, AgentInterface};
use url::{Origin, Url};

use crate::error::Error;
use crate::refusal::clip;

/// A way to carry A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// HTTP and JSON.
    HttpJson,
    /// gRPC.
    Grpc,
}

impl Binding {
    /// The name that cards give it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }

    /// The binding of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::JsonRpc, Self::HttpJson, Self::Grpc];
        all.into_iter()
            .find(|binding| binding.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One interface of an agent, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// How to speak.
    pub binding: Binding,
    /// Where, as `http` or `https`, also for gRPC.
    pub url: Url,
    /// The tenant to name in every request; empty if none (TEN-01).
    pub tenant: String,
    /// The version it serves, as `Major.Minor`.
    pub version: String,
    /// Whether our credentials go there.
    pub trusted: bool,
}

impl Interface {
    /// Whether it speaks protocol 0.3, or 0.2, which is the same on JSON-RPC.
    #[must_use]
    pub fn is_v03(&self) -> bool {
        is_old(&self.version)
    }
}

fn is_old(version: &str) -> bool {
    matches!(version, "0.3" | "0.2")
}

/// What the caller wants of an interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) binding: Option<Binding>,
    pub(crate) version: Option<String>,
    /// Whether to do without agents that know nothing newer than 0.3.
    pub(crate) without_v03: bool,
    /// Origins that may see our credentials beside that of the card, and may be plain http under an https card.
    pub(crate) origins: Vec<Origin>,
}

impl Choice {
    /// The interfaces that can be used, in the card's order (CARD-03), but for those of 0.3, which come last.
    ///
    /// # Errors
    /// When there is none; it says why for each.
    pub(crate) fn interfaces(
        &self,
        card: &AgentCard,
        card_url: &Url,
    ) -> Result<Vec<Interface>, Error> {
        let mut usable = Vec::new();
        let mut reasons = Vec::new();
        // A card of thousands of interfaces is a bad joke; the first are preferred anyway.
        for interface in card.supported_interfaces.iter().take(INTERFACES_MAX) {
            match self.interface(interface, card_url) {
                Ok(interface) => usable.push(interface),
                Err(why) => reasons.push(format!(
                    "{} {}: {why}",
                    clip(&interface.protocol_binding),
                    clip(&interface.protocol_version)
                )),
            }
        }
        if usable.is_empty() {
            if reasons.is_empty() {
                reasons.push("the card lists no interface".to_owned());
            }
            return Err(Error::NoInterface {
                reasons: clip(&reasons.join("; ")),
            });
        }
        usable.sort_by_key(Interface::is_v03);
        Ok(usable)
    }

    fn interface(&self, interface: &AgentInterface, card_url: &Url) -> Result<Interface, String> {
        let Some(binding) = Binding::from_name(&interface.protocol_binding) else {
            return Err("not a binding that we speak".to_owned());
        };
        if self.binding.is_some_and(|pinned| pinned != binding) {
            return Err("not the binding asked for".to_owned());
        }
        let version = major_minor(&interface.protocol_version);
        if let Some(pinned) = &self.version
            && major_minor(pinned) != version
        {
            return Err("not the version asked for".to_owned());
        }
        let speaks = version.starts_with("1.")
            || version == "0.3"
            || version == "0.2" && binding == Binding::JsonRpc;
        if !speaks {
            return Err("not a version that we speak, which are 1.0 and 0.3".to_owned());
        }
        if is_old(&version) && self.without_v03 {
            return Err("an old version, and it was asked to do without".to_owned());
        }
        if is_old(&version) && !interface.tenant.is_empty() {
            return Err("it has a tenant, and its version knows none".to_owned());
        }
        let url = address(binding, &interface.url, card_url)?;
        let allowed = self.origins.contains(&url.origin());
        if card_url.scheme() == "https" && url.scheme() == "http" && !allowed {
            return Err("plain http, although the card is https".to_owned());
        }
        Ok(Interface {
            binding,
            trusted: allowed || url.origin() == card_url.origin(),
            url,
            tenant: interface.tenant.clone(),
            version,
        })
    }
}

const INTERFACES_MAX: usize = 64;

/// A version without its patch number (CARD-08).
pub(crate) fn major_minor(version: &str) -> String {
    let mut numbers = version.trim().split('.');
    let major = numbers.next().unwrap_or_default();
    format!("{major}.{}", numbers.next().unwrap_or("0"))
}

/// The address of an interface as a URL that HTTP knows.
fn address(binding: Binding, text: &str, card_url: &Url) -> Result<Url, String> {
    let text = text.trim();
    let text = match text.split_once("://") {
        Some(("grpc", rest)) if binding == Binding::Grpc => format!("http://{rest}"),
        Some(("grpcs", rest)) if binding == Binding::Grpc => format!("https://{rest}"),
        Some(_) => text.to_owned(),
        // `host:port` says nothing of TLS: it is as safe as the card (CARD-04).
        None if binding == Binding::Grpc => format!("{}://{text}", card_url.scheme()),
        None => return Err("its URL is not absolute".to_owned()),
    };
    let url = Url::parse(&text).map_err(|error| format!("its URL cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("its URL is not of http".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its URL has a password in it".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "https://agent.example/.well-known/agent-card.json";

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let one = |(binding, version, url): &(&str, &str, &str)| AgentInterface {
            url: (*url).to_owned(),
            protocol_binding: (*binding).to_owned(),
            protocol_version: (*version).to_owned(),
            tenant: String::new(),
        };
        AgentCard {
            supported_interfaces: interfaces.iter().map(one).collect(),
            ..AgentCard::default()
        }
    }

    fn choose(choice: &Choice, interfaces: &[(&str, &str, &str)]) -> Vec<(Binding, String, bool)> {
        let url = Url::parse(CARD).unwrap();
        let chosen = choice.interfaces(&card(interfaces), &url).unwrap();
        let short = |it: Interface| (it.binding, it.url.to_string(), it.trusted);
        chosen.into_iter().map(short).collect()
    }

    fn origin(text: &str) -> Origin {
        Url::parse(text).unwrap().origin()
    }

    #[test]
    fn card_03_the_cards_order_counts_and_what_we_cannot_speak_is_passed_over() {
        let listed = [
            ("JSONRPC", "0.3.0", "https://agent.example/old"),
            ("urn:x:pigeon", "1.0", "https://agent.example/roof"),
            ("GRPC", "1.0", "agent.example:443"),
            ("JSONRPC", "1.0.1", "https://agent.example/rpc"),
        ];
        let chosen = choose(&Choice::default(), &listed);
        assert_eq!(
            chosen,
            [
                (Binding::Grpc, "https://agent.example/".to_owned(), true),
                (
                    Binding::JsonRpc,
                    "https://agent.example/rpc".to_owned(),
                    true
                ),
                // What is old comes last, whatever the order.
                (
                    Binding::JsonRpc,
                    "https://agent.example/old".to_owned(),
                    true
                ),
            ]
        );
    }

    #[test]
    fn dual_10_old_versions_can_be_done_without() {
        let choice = Choice {
            without_v03: true,
            ..Choice::default()
        };
        let url = Url::parse(CARD).unwrap();
        let reason = |choice: &Choice, listed: &[(&str, &str, &str)]| {
            let refused = choice.interfaces(&card(listed), &url).unwrap_err();
            refused.to_string()
        };
        let old = [("JSONRPC", "0.3.0", "https://agent.example/old")];
        assert!(reason(&choice, &old).contains("asked to do without"));
        assert_eq!(choose(&Choice::default(), &old).len(), 1);
        let older = [("JSONRPC", "0.2.6", "https://agent.example/old")];
        assert_eq!(choose(&Choice::default(), &older).len(), 1);
        let too_old = [("GRPC", "0.2.6", "https://agent.example/old")];
        assert!(reason(&Choice::default(), &too_old).contains("not a version that we speak"));
        let mut tenant = card(&old);
        "t".clone_into(&mut tenant.supported_interfaces[0].tenant);
        let refused = Choice::default().interfaces(&tenant, &url).unwrap_err();
        assert!(refused.to_string().contains("tenant"), "{refused}");
    }

    #[test]
    fn ver_05_binding_and_version_can_be_pinned() {
        let listed = [
            ("JSONRPC", "1.1", "https://agent.example/new"),
            ("JSONRPC", "1.0", "https://agent.example/rpc"),
            ("HTTP+JSON", "1.0", "https://agent.example/rest"),
        ];
        let pinned = Choice {
            version: Some("1.0.7".to_owned()),
            ..Choice::default()
        };
        assert_eq!(choose(&pinned, &listed)[0].1, "https://agent.example/rpc");
        let pinned = Choice {
            binding: Some(Binding::HttpJson),
            ..Choice::default()
        };
        assert_eq!(choose(&pinned, &listed).len(), 1);
        let pinned = Choice {
            version: Some("0.3".to_owned()),
            ..Choice::default()
        };
        let url = Url::parse(CARD).unwrap();
        let error = pinned.interfaces(&card(&listed), &url).unwrap_err();
        assert!(
            error.to_string().contains("not the version asked for"),
            "{error}"
        );
    }

    #[test]
    fn s13_another_origin_is_not_trusted() {
        for url in [
            "https://evil.example/rpc",
            "https://agent.example:8443/rpc",
            "https://sub.agent.example/rpc",
            "https://agent.example.evil.example/rpc",
        ] {
            assert!(
                !choose(&Choice::default(), &[("JSONRPC", "1.0", url)])[0].2,
                "{url}"
            );
        }
        let choice = Choice {
            origins: vec![origin("https://agent.example:8443")],
            ..Choice::default()
        };
        let listed = [("JSONRPC", "1.0", "https://agent.example:8443/rpc")];
        assert!(choose(&choice, &listed)[0].2);
    }

    #[test]
    fn s13_https_does_not_become_http() {
        let url = Url::parse(CARD).unwrap();
        for (binding, address) in [
            ("JSONRPC", "http://agent.example/rpc"),
            ("GRPC", "grpc://agent.example:443"),
        ] {
            let listed = [(binding, "1.0", address)];
            let refused = Choice::default().interfaces(&card(&listed), &url);
            assert!(refused.unwrap_err().to_string().contains("plain http"));
            let choice = Choice {
                origins: vec![origin(&address.replace("grpc", "http"))],
                ..Choice::default()
            };
            assert_eq!(choose(&choice, &listed).len(), 1);
        }
    }

    #[test]
    fn card_04_addresses_of_grpc_come_in_many_forms() {
        for (address, url) in [
            ("agent.example:50051", "https://agent.example:50051/"),
            ("[::1]:50051", "https://[::1]:50051/"),
            ("https://agent.example", "https://agent.example/"),
            (
                "grpcs://agent.example:50051",
                "https://agent.example:50051/",
            ),
        ] {
            let chosen = choose(&Choice::default(), &[("GRPC", "1.0", address)]);
            assert_eq!(chosen[0].1, url);
        }
    }

    #[test]
    fn unusable_addresses_are_named() {
        let url = Url::parse(CARD).unwrap();
        for address in [
            "",
            "/rpc",
            "ftp://x/",
            "https://",
            "https://u:p@agent.example/",
            "file:///x",
        ] {
            let listed = [("JSONRPC", "1.0", address)];
            let error = Choice::default()
                .interfaces(&card(&listed), &url)
                .unwrap_err();
            assert!(error.to_string().contains("its URL"), "{address}: {error}");
            assert!(!error.to_string().contains("u:p"));
        }
        let error = Choice::default().interfaces(&card(&[]), &url).unwrap_err();
        assert!(error.to_string().contains("no interface"), "{error}");
    }
}
