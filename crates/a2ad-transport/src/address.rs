//! Where clients reach us.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, Uri};
use ipnet::IpNet;

/// The address that cards show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `http` or `https`, a host, a port unless it is the usual one, and a path without a trailing slash.
    url: String,
    grpc: Grpc,
    /// `host:port`, if gRPC can be reached: it knows no paths.
    grpc_shown: Option<String>,
}

/// Where gRPC is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grpc {
    /// At the same host and port as everything.
    Here,
    /// At another port of the same host.
    Port(u16),
    /// Somewhere else, as `host:port`.
    At(String),
}

impl Address {
    /// An address from its URL, which has no trailing slash. `None` if clients could not use it.
    #[must_use]
    pub fn new(url: &str, grpc: Grpc) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let usual = match uri.scheme_str()? {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let authority = uri.authority()?.as_str();
        let host = uri.host().filter(|host| is_host(host))?;
        let port = match authority.strip_prefix(host)? {
            "" => usual,
            rest => port(rest.strip_prefix(':')?)?,
        };
        let path = uri.path().trim_end_matches('/');
        // The parser drops a fragment in silence.
        if uri.query().is_some() || url.contains('#') || !(path.is_empty() || is_prefix(path)) {
            return None;
        }
        let grpc_shown = match &grpc {
            Grpc::Here => path.is_empty().then(|| format!("{host}:{port}")),
            Grpc::Port(port) => Some(format!("{host}:{port}")),
            Grpc::At(address) => Some(address.clone()),
        };
        Some(Self {
            url: url.to_owned(),
            grpc,
            grpc_shown,
        })
    }

    /// Without a trailing slash.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn grpc(&self) -> Option<&str> {
        self.grpc_shown.as_deref()
    }

    /// The address that a caller's request came to, as the proxy before us says, if we trust whoever passed it on
    /// and it says another one. If anything it says is wrong, nothing of it is believed.
    ///
    /// Of several values the last counts, which is the one that our proxy wrote.
    pub(crate) fn forwarded(&self, head: &Parts, peer: IpAddr, trusted: &[IpNet]) -> Option<Self> {
        if !trusted.iter().any(|net| net.contains(&peer)) {
            return None;
        }
        let said = |name: &str| said(&head.headers, name);
        let host = said("x-forwarded-host").ok()??;
        if host.contains('/') {
            return None;
        }
        let scheme = match said("x-forwarded-proto").ok()? {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => "http",
            Some(_) => return None,
            None if self.url.starts_with("https:") => "https",
            None => "http",
        };
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, end)| !end.ends_with(']'));
        let port = match said("x-forwarded-port").ok()?.map(port) {
            Some(None) => return None,
            Some(Some(443)) if scheme == "https" => String::new(),
            Some(Some(80)) if scheme == "http" => String::new(),
            Some(Some(port)) if !has_port => format!(":{port}"),
            Some(Some(_)) | None => String::new(),
        };
        let prefix = said("x-forwarded-prefix").ok()?.unwrap_or_default();
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() && !is_prefix(prefix) {
            return None;
        }
        Self::new(
            &format!("{scheme}://{host}{port}{prefix}"),
            self.grpc.clone(),
        )
    }
}

/// What a header says last; nothing if it is absent or empty.
///
/// # Errors
/// If it says something that is no text.
fn said<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    let Some(line) = headers.get_all(name).iter().next_back() else {
        return Ok(None);
    };
    let text = line.to_str().map_err(|_| ())?;
    let last = text.rsplit(',').next().unwrap_or_default().trim();
    Ok((!last.is_empty()).then_some(last))
}

/// A name, or an address; one of IPv6 stands in brackets.
fn is_host(text: &str) -> bool {
    if let Some(six) = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return six.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(inside)
}

fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// A path that other paths can be put behind: plain segments, none of which leads back.
fn is_prefix(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else {
        return false;
    };
    path.split('/').all(|segment| {
        let plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | ':' | '@');
        !segment.is_empty() && segment != "." && segment != ".." && segment.chars().all(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)], peer: &str) -> Option<String> {
        let mut request = http::Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, value.as_bytes());
        }
        let head = request.body(()).unwrap().into_parts().0;
        let trusted = ["127.0.0.0/8".parse().unwrap()];
        let usual = Address::new("http://127.0.0.1:41240", Grpc::Here).unwrap();
        usual
            .forwarded(&head, peer.parse().unwrap(), &trusted)
            .map(|address| address.url)
    }

    #[test]
    fn grpc_has_a_host_and_a_port() {
        let grpc = |url: &str, grpc| Address::new(url, grpc).unwrap().grpc_shown;
        let here = |url: &str| grpc(url, Grpc::Here);
        assert_eq!(here("http://a:1").as_deref(), Some("a:1"));
        assert_eq!(here("http://[::1]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(here("https://a.test").as_deref(), Some("a.test:443"));
        assert_eq!(here("http://a.test").as_deref(), Some("a.test:80"));
        assert_eq!(here("https://a.test/agents"), None);
        assert_eq!(
            grpc("https://a.test/x", Grpc::Port(9)).as_deref(),
            Some("a.test:9")
        );
        let at = Grpc::At("grpc.test:443".to_owned());
        assert_eq!(
            grpc("https://a.test/x", at).as_deref(),
            Some("grpc.test:443")
        );
    }

    #[test]
    fn an_address_is_one_that_clients_could_use() {
        for url in [
            "http://a",
            "https://a_b.test:8443/x/y~z",
            "http://[::1]",
            "http://127.0.0.1:1",
        ] {
            assert!(Address::new(url, Grpc::Here).is_some(), "{url}");
        }
        for url in [
            "",
            "a",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:99999",
            "http://a:abc",
            "http://a:",
            "http://[::1",
            "http://[x]",
            "http://a b",
            "http://u@a",
            "http://m\u{fc}nchen.test",
            "http://*",
            "http://a/<x>",
            "http://a/x?y",
            "http://a/x#y",
            "http://a/../x",
            "http://a//x",
            "http://a/%zz",
        ] {
            assert_eq!(Address::new(url, Grpc::Here), None, "{url}");
        }
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
            ask(&[
                ("x-forwarded-host", "evil.test, agents.test:81"),
                ("x-forwarded-port", "82")
            ])
            .as_deref(),
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
            &[("x-forwarded-host", "*")],
            &[("x-forwarded-host", "a.test:99999")],
            &[("x-forwarded-host", "a.test:abc")],
            &[("x-forwarded-host", "a.test/x")],
            &[("x-forwarded-host", "h;y=$&!.test")],
            &[host, ("x-forwarded-proto", "gopher")],
            &[host, ("x-forwarded-port", "0")],
            &[host, ("x-forwarded-port", "80x")],
            &[host, ("x-forwarded-prefix", "x")],
            &[host, ("x-forwarded-prefix", "//evil.test")],
            &[host, ("x-forwarded-prefix", "/x?y")],
            &[host, ("x-forwarded-prefix", "/x#y")],
            &[host, ("x-forwarded-prefix", "/../y")],
            &[host, ("x-forwarded-prefix", "/%2e%2e")],
            &[host, ("x-forwarded-prefix", "/\u{e9}")],
        ] {
            assert_eq!(asked(nonsense, "127.0.0.1"), None, "{nonsense:?}");
        }
    }
}
