use std::collections::HashSet;
use std::net::IpAddr;

use url::{Host, Url};

use super::address;
use super::error::{BuildError, Reason, Refused};

/// The longest URL that is dialled.
pub const URL_BYTES_MAX: usize = 8 * 1024;

/// Who may be dialled. The default: any public host, over `http` or `https`.
///
/// ```
/// use a2ad_client::dial::Rules;
/// let rules = Rules {
///     hosts: vec!["hooks.example.com".into(), "*.example.org".into(), "example.net:8443".into()],
///     https_only: true,
///     ..Rules::default()
/// };
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// If there are any, only these hosts: `host`, `host:port`, or `*.domain` for the names below a domain. They have
    /// to be public all the same.
    pub hosts: Vec<String>,
    /// Lets loopback, private and shared addresses and `localhost` pass. Link-local addresses, metadata services and
    /// the rest stay closed.
    pub allow_private: bool,
    /// Only `https`.
    pub https_only: bool,
    /// Hosts and ports that whoever runs the server wrote into its configuration, and that are thereby allowed whatever
    /// they are and whatever the rules above say. Everyone whose URLs go through this dialer may reach them: a dialer
    /// for strangers' URLs should have none.
    pub endpoints: Vec<(String, u16)>,
}

/// How a URL is let through, which decides how the addresses behind its name are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Like everyone's: every address is judged.
    Judged,
    /// Any address will do.
    Any,
}

/// [`Rules`], read.
#[derive(Debug)]
pub(super) struct Judge {
    /// None: every URL of a valid form passes.
    rules: Option<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    hosts: Vec<HostRule>,
    allow_private: bool,
    https_only: bool,
    endpoints: HashSet<(Host<String>, u16)>,
}

#[derive(Debug, PartialEq, Eq)]
struct HostRule {
    host: Host<String>,
    /// The names below it, and not itself.
    below: bool,
    port: Option<u16>,
}

impl Judge {
    pub(super) fn new(rules: &Rules) -> Result<Self, BuildError> {
        let hosts = rules.hosts.iter().map(|text| HostRule::read(text));
        let endpoints = rules
            .endpoints
            .iter()
            .map(|(host, port)| match read_host(host) {
                Some(host) if *port != 0 => Ok((host, *port)),
                _ => Err(BuildError::HostRule(format!("{host}:{port}"))),
            });
        Ok(Self {
            rules: Some(Compiled {
                hosts: hosts.collect::<Result<_, _>>()?,
                allow_private: rules.allow_private,
                https_only: rules.https_only,
                endpoints: endpoints.collect::<Result<_, _>>()?,
            }),
        })
    }

    /// The one that lets every host through.
    pub(super) fn of_form_only() -> Self {
        Self { rules: None }
    }

    /// Judges all that can be seen without resolving.
    pub(super) fn url(&self, url: &Url) -> Result<Pass, Refused> {
        let refuse = |reason| {
            Err(Refused {
                host: url.host_str().unwrap_or_default().to_owned(),
                reason,
            })
        };
        if url.as_str().len() > URL_BYTES_MAX {
            // A host of that length helps nobody.
            return Err(Refused {
                host: String::new(),
                reason: Reason::TooLong,
            });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(Reason::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(Reason::UserInfo);
        }
        let Some(host) = url.host() else {
            return refuse(Reason::NoHost);
        };
        let host = normal(host.to_owned());
        if host == Host::Domain(String::new()) {
            return refuse(Reason::NoHost);
        }
        let Some(port) = url.port_or_known_default().filter(|port| *port != 0) else {
            return refuse(Reason::Port);
        };
        let Some(rules) = &self.rules else {
            return Ok(Pass::Any);
        };
        if rules.endpoints.contains(&(host.clone(), port)) {
            return Ok(Pass::Any);
        }
        if rules.https_only && url.scheme() != "https" {
            return refuse(Reason::PlainHttp);
        }
        let listed = || rules.hosts.iter().any(|rule| rule.covers(&host, port));
        if !rules.hosts.is_empty() && !listed() {
            return refuse(Reason::NotListed);
        }
        let wrong = match &host {
            Host::Ipv4(ip) => self.address(IpAddr::V4(*ip)).map(Reason::Address),
            Host::Ipv6(ip) => self.address(IpAddr::V6(*ip)).map(Reason::Address),
            Host::Domain(name) => rules.name(name),
        };
        match wrong {
            Some(reason) => refuse(reason),
            None => Ok(Pass::Judged),
        }
    }

    /// The range that keeps `ip` from being dialled under these rules.
    pub(super) fn address(&self, ip: IpAddr) -> Option<address::Range> {
        let rules = self.rules.as_ref()?;
        address::special(ip).filter(|range| !(rules.allow_private && range.is_private()))
    }

    /// Judges all that a name stands for. One bad address among good ones is an attack, not an accident.
    pub(super) fn resolved(&self, name: &str, addresses: &[IpAddr]) -> Result<(), Refused> {
        match addresses.iter().find_map(|ip| self.address(*ip)) {
            Some(range) => Err(Refused {
                host: name.to_owned(),
                reason: Reason::Resolved(range),
            }),
            None => Ok(()),
        }
    }
}

impl Compiled {
    fn name(&self, name: &str) -> Option<Reason> {
        let is_or_below = |of: &&str| {
            name.strip_suffix(of)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if METADATA_NAMES.iter().any(is_or_below) {
            Some(Reason::MetadataName)
        } else if !self.allow_private && LOCAL_NAMES.iter().any(is_or_below) {
            Some(Reason::LocalName)
        } else {
            None
        }
    }
}

/// Names of this machine, with all below them.
const LOCAL_NAMES: &[&str] = &["localhost", "localdomain", "ip6-localhost", "ip6-loopback"];

/// Names by which clouds hand out credentials, with all below them.
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
];

impl HostRule {
    fn read(text: &str) -> Result<Self, BuildError> {
        let wrong = || BuildError::HostRule(text.to_owned());
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        // A colon inside brackets, or one of several, belongs to an IPv6 address.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port != 0);
                (host, Some(port.ok_or_else(wrong)?))
            }
            _ => (rest, None),
        };
        let host = read_host(host).ok_or_else(wrong)?;
        if below && !matches!(host, Host::Domain(_)) {
            return Err(wrong());
        }
        Ok(Self { host, below, port })
    }

    fn covers(&self, host: &Host<String>, port: u16) -> bool {
        let named = match (&self.host, host) {
            (Host::Domain(rule), Host::Domain(name)) if self.below => name
                .strip_suffix(rule.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            (rule, host) => rule == host,
        };
        named && self.port.is_none_or(|only| only == port)
    }
}

/// Reads a host as URLs do, so that all spellings of one are one. An IPv6 address may come without its brackets.
fn read_host(text: &str) -> Option<Host<String>> {
    if text.contains(['/', '?', '#', '@', '\\', '*', '%']) {
        return None;
    }
    let host = match text.parse() {
        Ok(ip) => Host::Ipv6(ip),
        Err(_) => normal(Host::parse(text).ok()?),
    };
    (host != Host::Domain(String::new())).then_some(host)
}

/// Without the dot at the end that says that a name is whole, and without the spelling of IPv4 in IPv6.
fn normal(host: Host<String>) -> Host<String> {
    match host {
        Host::Domain(mut name) => {
            name.truncate(name.trim_end_matches('.').len());
            Host::Domain(name)
        }
        Host::Ipv6(ip) => ip.to_ipv4_mapped().map_or(Host::Ipv6(ip), Host::Ipv4),
        Host::Ipv4(_) => host,
    }
}
