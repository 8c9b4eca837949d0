use std::future::Future;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::{fmt, io};

use reqwest::dns::{Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use super::rules::Judge;

/// What a [`Resolver`] promises.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Turns names into addresses. It is asked once per connection, for names only, and all that it answers is judged.
pub trait Resolver: fmt::Debug + Send + Sync + 'static {
    /// All addresses of `host`, best first.
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a>;
}

/// The system's resolver: `getaddrinfo`, on threads of the runtime for blocking work.
///
/// At most [`SystemResolver::LOOKUPS_MAX`] lookups run at once, given up ones included, since they cannot be stopped:
/// whoever names hosts with slow name servers takes no more threads than that. Further ones wait.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    running: Arc<Semaphore>,
}

impl SystemResolver {
    /// Lookups at once.
    pub const LOOKUPS_MAX: usize = 64;
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(Self::LOOKUPS_MAX)),
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let permit = Arc::clone(&self.running).acquire_owned().await;
            let host = host.to_owned();
            tokio::task::spawn_blocking(move || {
                let _until_the_end = permit;
                let found = (host.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            })
            .await
            .map_err(io::Error::other)?
        })
    }
}

/// Between the HTTP client and the resolver: what is not judged good does not get through.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) resolver: Arc<dyn Resolver>,
    /// None: any address will do.
    pub(super) judge: Option<Arc<Judge>>,
    #[cfg(test)]
    pub(super) seam: Option<Arc<dyn super::tests::Seam>>,
}

/// How many of a name's addresses are tried.
const TRIED_MAX: usize = 8;

/// The name that is never looked up: where the HTTP client is sent if it is asked for what it should not be.
pub(super) const NOWHERE: &str = "refused.invalid";

/// Marks a failed lookup among the HTTP client's errors.
#[derive(Debug, thiserror::Error)]
#[error("the name could not be resolved")]
pub(super) struct Unresolved;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Gate {
    async fn pass(self, name: Name) -> Result<Vec<SocketAddr>, BoxError> {
        let name = name.as_str();
        if name == NOWHERE {
            return Err(Box::new(Unresolved));
        }
        let found = self.resolver.resolve(name).await.map_err(|_| Unresolved)?;
        if found.is_empty() {
            return Err(Box::new(Unresolved));
        }
        if let Some(judge) = &self.judge {
            judge.resolved(name, &found)?;
        }
        #[cfg(test)]
        if let Some(seam) = &self.seam {
            return Ok(seam.judged(name, found));
        }
        // The HTTP client puts in the port.
        let tried = found.into_iter().take(TRIED_MAX);
        Ok(tried.map(|ip| SocketAddr::new(ip, 0)).collect())
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = self.clone();
        Box::pin(async move {
            let addresses = gate.pass(name).await?;
            Ok(Box::new(addresses.into_iter()) as reqwest::dns::Addrs)
        })
    }
}
