//! Where clients reach us.

use std::net::IpAddr;

use http::Uri;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use ipnet::IpNet;

/// The address that cards show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `http` or `https`, a host, a port unless it is the usual one, and a path without a trailing slash.
    url: String,
    /// `host:port`, if gRPC can be reached: it knows no paths.
    grpc: Option<String>,
    grpc_port: Option<u16>,
}

impl Address {
    /// An address from its URL, which has no trailing slash; `grpc_port` if gRPC has a port of its own. `None` if
    /// it is no such URL.
    #[must_use]
    pub fn new(url: &str, grpc_port: Option<u16>) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let usual = match uri.scheme_str()? {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let host = uri.host()?;
        let at_root = matches!(uri.path(), "" | "/");
        let port = grpc_port.or_else(|| at_root.then(|| uri.port_u16().unwrap_or(usual)));
        Some(Self {
            url: url.to_owned(),
            grpc: port.map(|port| format!("{host}:{port}")),
            grpc_port,
        })
    }

    /// Without a trailing slash.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn grpc(&self) -> Option<&str> {
        self.grpc.as_deref()
    }

    /// The address that a caller's request came to, as the proxy before us says, if we trust whoever passed it on
    /// and it says another one.
    ///
    /// Of several values the last counts, which is the one that our proxy wrote.
    pub(crate) fn forwarded(&self, head: &Parts, peer: IpAddr, trusted: &[IpNet]) -> Option<Self> {
        if !trusted.iter().any(|net| net.contains(&peer)) {
            return None;
        }
        let said = |name: &str| {
            let line = head.headers.get_all(name).iter().next_back()?;
            let last = line.to_str().ok()?.rsplit(',').next()?.trim();
            (!last.is_empty()).then_some(last)
        };
        let host: Authority = said("x-forwarded-host")?.parse().ok()?;
        if host.as_str().contains('@') {
            return None;
        }
        let scheme = match said("x-forwarded-proto") {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => "http",
            Some(_) => return None,
            None if self.url.starts_with("https:") => "https",
            None => "http",
        };
        let port = said("x-forwarded-port").and_then(|port| port.parse::<u16>().ok());
        let port = match port.filter(|_| host.port().is_none()) {
            Some(443) if scheme == "https" => String::new(),
            Some(80) if scheme == "http" => String::new(),
            Some(port) => format!(":{port}"),
            None => String::new(),
        };
        let prefix = said("x-forwarded-prefix").map_or("", |prefix| prefix.trim_end_matches('/'));
        let is_path = |prefix: &str| {
            let path = prefix.parse::<PathAndQuery>();
            prefix.starts_with('/')
                && !prefix.starts_with("//")
                && path.is_ok_and(|path| path.query().is_none())
        };
        if !prefix.is_empty() && !is_path(prefix) {
            return None;
        }
        Self::new(&format!("{scheme}://{host}{port}{prefix}"), self.grpc_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Address {
        Address::new("http://127.0.0.1:41240", None).unwrap()
    }

    fn asked(headers: &[(&str, &str)], peer: &str) -> Option<String> {
        let mut request = http::Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let trusted = ["127.0.0.0/8".parse().unwrap()];
        usual()
            .forwarded(&head, peer.parse().unwrap(), &trusted)
            .map(|address| address.url)
    }

    #[test]
    fn grpc_has_a_host_and_a_port() {
        let grpc = |url: &str, port| Address::new(url, port).unwrap().grpc;
        assert_eq!(grpc("http://a:1", None).as_deref(), Some("a:1"));
        assert_eq!(grpc("http://[::1]:1", None).as_deref(), Some("[::1]:1"));
        assert_eq!(grpc("https://a.test", None).as_deref(), Some("a.test:443"));
        assert_eq!(grpc("http://a.test", None).as_deref(), Some("a.test:80"));
        assert_eq!(grpc("https://a.test/agents", None), None);
        assert_eq!(
            grpc("https://a.test/x", Some(9)).as_deref(),
            Some("a.test:9")
        );
        assert_eq!(Address::new("ftp://a", None), None);
        assert_eq!(Address::new("a", None), None);
    }

    #[test]
    fn a_trusted_proxy_says_where_it_was_reached() {
        let host = ("x-forwarded-host", "agents.test");
        let https = ("x-forwarded-proto", "https");
        let ask = |headers: &[(&str, &str)]| asked(headers, "127.0.0.1");
        assert_eq!(ask(&[host, https]).as_deref(), Some("https://agents.test"));
        assert_eq!(ask(&[host]).as_deref(), Some("http://agents.test"));
        assert_eq!(
            ask(&[host, https, ("x-forwarded-port", "8443")]).as_deref(),
            Some("https://agents.test:8443")
        );
        assert_eq!(
            ask(&[
                host,
                https,
                ("x-forwarded-port", "443"),
                ("x-forwarded-prefix", "/x/")
            ])
            .as_deref(),
            Some("https://agents.test/x")
        );
        assert_eq!(
            ask(&[("x-forwarded-host", "evil.test, agents.test:81")]).as_deref(),
            Some("http://agents.test:81")
        );
    }

    #[test]
    fn nobody_else_is_believed_and_nonsense_is_not() {
        let host = ("x-forwarded-host", "agents.test");
        assert_eq!(asked(&[host], "10.0.0.1"), None);
        assert_eq!(asked(&[], "127.0.0.1"), None);
        for nonsense in [
            &[("x-forwarded-host", "a b")][..],
            &[("x-forwarded-host", "user@a.test")],
            &[host, ("x-forwarded-proto", "gopher")],
            &[host, ("x-forwarded-prefix", "x")],
            &[host, ("x-forwarded-prefix", "//evil.test")],
            &[host, ("x-forwarded-prefix", "/x?y")],
        ] {
            assert_eq!(asked(nonsense, "127.0.0.1"), None, "{nonsense:?}");
        }
    }
}
