use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::error::BuildError;

/// What TLS brings beside the system's roots.
#[derive(Clone, Default)]
pub struct Tls {
    roots: Vec<CertificateDer<'static>>,
    identity: Option<Arc<Identity>>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Tls {
    /// Trusts the certificates in this PEM text, too.
    pub fn with_roots(mut self, pem: &[u8]) -> Result<Self, BuildError> {
        let before = self.roots.len();
        for root in CertificateDer::pem_slice_iter(pem) {
            self.roots.push(root.map_err(|_| BuildError::Roots)?);
        }
        if self.roots.len() == before {
            return Err(BuildError::Roots);
        }
        Ok(self)
    }

    /// Shows this certificate (with the chain above it) to whoever asks. Both are PEM texts, and may be the same.
    ///
    /// It is shown to every host that the dialer reaches: make a dialer for each peer that has to see one.
    pub fn with_identity(mut self, certificate: &[u8], key: &[u8]) -> Result<Self, BuildError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| BuildError::Identity("the certificate is no PEM text"))?;
        if chain.is_empty() {
            return Err(BuildError::Identity("there is no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| BuildError::Identity("there is no private key"))?;
        self.identity = Some(Arc::new(Identity { chain, key }));
        Ok(self)
    }

    /// The system's roots rather than a list compiled in: whoever runs the server decides whom it trusts, and that
    /// list stays fresh without a new release of ours. A system without any can still use plain HTTP and the roots
    /// given here.
    pub(super) fn config(&self) -> Result<ClientConfig, BuildError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|_| BuildError::Identity("no common TLS version"))?;
        let builder = match self.verifier(provider) {
            Ok(verifier) => builder
                .dangerous()
                .with_custom_certificate_verifier(verifier),
            Err(_) => builder.with_root_certificates(self.roots_alone()?),
        };
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(|_| BuildError::Identity("they do not belong together")),
        }
    }

    /// Whom the system trusts is read once for all dialers without roots of their own.
    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Arc<Verifier>, rustls::Error> {
        static SYSTEM: OnceLock<Arc<Verifier>> = OnceLock::new();
        if !self.roots.is_empty() {
            let roots = self.roots.iter().cloned();
            return Verifier::new_with_extra_roots(roots, provider).map(Arc::new);
        }
        match SYSTEM.get() {
            Some(verifier) => Ok(Arc::clone(verifier)),
            None => {
                let verifier = Arc::new(Verifier::new(provider)?);
                Ok(Arc::clone(SYSTEM.get_or_init(|| verifier)))
            }
        }
    }

    fn roots_alone(&self) -> Result<RootCertStore, BuildError> {
        let mut store = RootCertStore::empty();
        for root in &self.roots {
            store.add(root.clone()).map_err(|_| BuildError::Roots)?;
        }
        Ok(store)
    }
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("roots", &self.roots.len())
            .field("identity", &self.identity.as_ref().map(|_| "***"))
            .finish()
    }
}
