use a2ad_client::dial::{BuildError, DialError, Tls};
use http::{Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;

const NAME: &str = "agent.example";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

/// Asks for a certificate from `clients`, if there is one, and tells in its answer by which name it was asked for.
struct SecureHost {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl SecureHost {
    async fn new(
        issuer: &Authority,
        name: &str,
        clients: Option<&Authority>,
        alpn: &[&str],
    ) -> Self {
        let acceptor = acceptor(issuer, name, clients, alpn);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(acceptor.clone(), stream));
            }
        });
        Self {
            address,
            _tasks: tasks,
        }
    }

    fn request(&self, name: &str) -> Request<Bytes> {
        get(&format!("https://{name}:{}/", self.address.port()))
    }

    fn dialer(&self, tls: Tls) -> Dialer {
        let rules = Rules {
            endpoints: [NAME, "other.example"]
                .map(|name| (name.into(), self.address.port()))
                .into(),
            ..Rules::default()
        };
        let builder = Builder::guarded(rules).resolver(Arc::new(Here)).tls(tls);
        builder.build().unwrap()
    }
}

fn acceptor(
    issuer: &Authority,
    name: &str,
    clients: Option<&Authority>,
    alpn: &[&str],
) -> TlsAcceptor {
    let (certificate, key) = issuer.issue(name);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.0.der().clone()).unwrap();
            let roots = Arc::new(roots);
            let asks = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            config.with_client_cert_verifier(asks.unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let chain = vec![certificate.der().clone()];
    let mut config = config.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(acceptor: TlsAcceptor, stream: tokio::net::TcpStream) {
    let stream = match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => stream,
        Err((_, mut stream)) => {
            // To close on unread data would overtake the alert.
            drop(tokio::io::copy(&mut stream, &mut tokio::io::sink()).await);
            return;
        }
    };
    let connection = stream.get_ref().1;
    let sni = connection.server_name().unwrap_or_default().to_owned();
    let h2 = connection.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |_: Request<Incoming>| {
        let body = Full::new(Bytes::from(sni.clone()));
        async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
    });
    let stream = TokioIo::new(stream);
    if h2 {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        drop(server.serve_connection(stream, service).await);
    } else {
        let server = hyper::server::conn::http1::Builder::new();
        drop(server.serve_connection(stream, service).await);
    }
}

fn trusting(authority: &Authority) -> Tls {
    let pem = authority.0.pem();
    Tls::default().with_roots(pem.as_bytes()).unwrap()
}

#[tokio::test]
async fn the_protocol_is_the_best_of_both_and_the_name_is_kept() {
    let authority = Authority::new("some");
    for (alpn, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let host = SecureHost::new(&authority, NAME, None, alpn).await;
        let dialer = host.dialer(trusting(&authority));
        let answer = dialer.send(host.request(NAME), &short()).await.unwrap();
        assert_eq!(answer.version(), version);
        assert_eq!(answer.into_body().bytes().await.unwrap(), NAME);
        let answer = dialer.send_h2(host.request(NAME), &short()).await;
        assert_eq!(answer.is_ok(), version == Version::HTTP_2, "{answer:?}");
    }
}

fn why(answer: Result<Response<a2ad_client::dial::Body>, DialError>) -> &'static str {
    match answer {
        Err(DialError::Tls { host, why }) if host.ends_with(".example") => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_for_the_name() {
    let authority = Authority::new("some");
    let host = SecureHost::new(&authority, NAME, None, &[]).await;
    let stranger = host.dialer(Tls::default());
    let answer = stranger.send(host.request(NAME), &short()).await;
    assert_eq!(why(answer), "its certificate is from an unknown issuer");
    let other = host.dialer(trusting(&Authority::new("other")));
    let answer = other.send(host.request(NAME), &short()).await;
    assert_eq!(why(answer), "its certificate is from an unknown issuer");
    let dialer = host.dialer(trusting(&authority));
    let answer = dialer.send(host.request("other.example"), &short()).await;
    assert_eq!(why(answer), "its certificate is for another name");
}

#[tokio::test]
async fn a_certificate_is_shown_to_who_asks_for_it() {
    let (hosts, clients) = (Authority::new("hosts"), Authority::new("clients"));
    let with = |issuer: &Authority| {
        let (certificate, key) = issuer.issue("client.example");
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        let tls = trusting(&hosts);
        tls.with_identity(certificate.as_bytes(), key.as_bytes())
            .unwrap()
    };
    for alpn in [&["h2"][..], &["http/1.1"]] {
        let host = SecureHost::new(&hosts, NAME, Some(&clients), alpn).await;
        let dialer = host.dialer(with(&clients));
        assert!(dialer.send(host.request(NAME), &short()).await.is_ok());
        for tls in [trusting(&hosts), with(&Authority::new("other"))] {
            let answer = host.dialer(tls).send(host.request(NAME), &short()).await;
            assert_eq!(why(answer), "it does not accept our certificate");
        }
    }
}

#[test]
fn what_cannot_be_used_is_said_when_it_is_given() {
    let authority = Authority::new("some");
    let ((certificate, _), (_, other)) =
        (authority.issue("a.example"), authority.issue("b.example"));
    let (certificate, other) = (certificate.pem(), other.serialize_pem());
    let no_roots = |pem: &[u8]| matches!(Tls::default().with_roots(pem), Err(BuildError::Roots));
    assert!(no_roots(b""));
    assert!(no_roots(b"hello"));
    assert!(no_roots(other.as_bytes()));
    assert!(no_roots(
        b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"
    ));
    let identity = |certificate: &[u8], key: &[u8]| {
        let tls = Tls::default().with_identity(certificate, key)?;
        Builder::unguarded().tls(tls).build()
    };
    for (certificate, key) in [
        ("", other.as_str()),
        (other.as_str(), other.as_str()),
        (certificate.as_str(), ""),
        (certificate.as_str(), certificate.as_str()),
        (certificate.as_str(), other.as_str()),
    ] {
        let made = identity(certificate.as_bytes(), key.as_bytes());
        assert!(matches!(made, Err(BuildError::Identity(_))), "{made:?}");
    }
}

#[test]
fn a_key_is_not_printed() {
    let (certificate, key) = Authority::new("some").issue("a.example");
    let tls = Tls::default();
    let tls = tls.with_identity(certificate.pem().as_bytes(), key.serialize_pem().as_bytes());
    assert_eq!(
        format!("{:?}", tls.unwrap()),
        "Tls { roots: 0, identity: Some(\"***\") }"
    );
}

#[tokio::test]
async fn plain_http_behind_https_is_no_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let request = get(&format!("https://{NAME}:{port}/"));
    let answer = dialer_to(NAME, port).send(request, &short()).await;
    assert_eq!(why(answer), "not a valid handshake");
}

/// What breaks once the request is out says nothing of whether it was acted on.
#[tokio::test]
async fn a_session_that_breaks_after_the_request_has_sent_it() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let authority = Authority::new("some");
    // A record that nobody can decrypt; a fatal alert in plain text, which nobody would send.
    for record in [
        &b"\x17\x03\x03\x00\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[..],
        b"\x15\x03\x03\x00\x02\x02\x50",
    ] {
        let acceptor = acceptor(&authority, NAME, None, &[]);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut head = [0; 1024];
            assert!(stream.read(&mut head).await.unwrap() > 0);
            let (mut raw, _) = stream.into_inner();
            raw.write_all(record).await.unwrap();
            drop(tokio::io::copy(&mut raw, &mut tokio::io::sink()).await);
        });
        let host = SecureHost {
            address,
            _tasks: tasks,
        };
        let dialer = host.dialer(trusting(&authority));
        let error = dialer.send(host.request(NAME), &short()).await.unwrap_err();
        assert!(!error.is_unsent(), "{error:?}");
    }
}
