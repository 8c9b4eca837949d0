//! Whom to call.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, Result, ensure};

/// An agent at an address.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where to connect to.
    pub address: SocketAddr,
    /// The agent's own path there, without a slash at the end.
    pub path: String,
    /// A bearer token to send.
    pub token: Option<String>,
}

impl Target {
    /// From a URL such as `http://127.0.0.1:41240/agents/echo`. Only this machine is called.
    ///
    /// # Errors
    /// When it is no such URL, or names another machine.
    pub fn parse(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://");
        let rest = rest.with_context(|| format!("{url} does not begin with http://"))?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let mut addresses = authority
            .to_socket_addrs()
            .with_context(|| format!("{url} has no address with a port"))?;
        let address = addresses.next();
        let address = address.with_context(|| format!("{authority} has no address"))?;
        ensure!(address.ip().is_loopback(), "{authority} is another machine");
        Ok(Self {
            address,
            path: path.trim_end_matches('/').to_owned(),
            token: None,
        })
    }

    /// The same server, at another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self {
            path: path.trim_end_matches('/').to_owned(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_path() {
        let target = Target::parse("http://127.0.0.1:80/agents/echo/").unwrap();
        assert_eq!(target.address.to_string(), "127.0.0.1:80");
        assert_eq!(target.path, "/agents/echo");
        assert_eq!(Target::parse("http://127.0.0.1:80").unwrap().path, "");
        for wrong in [
            "127.0.0.1:80",
            "https://127.0.0.1:80/",
            "http://192.0.2.1:80/",
            "http://127.0.0.1/",
        ] {
            Target::parse(wrong).unwrap_err();
        }
    }
}
