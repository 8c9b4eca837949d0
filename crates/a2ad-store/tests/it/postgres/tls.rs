//! TLS: as sure of the server as the URL asks for.

use std::sync::Arc;
use std::time::Duration;

use a2ad_pgkit::{Cluster, USER};
use a2ad_store::postgres::OpenError;
use a2ad_store::{PostgresOptions, PostgresStore};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::rig::{Ears, Instance};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

async fn opened(url: &str) -> Result<(), OpenError> {
    let options = PostgresOptions {
        patience: Duration::ZERO,
        ..PostgresOptions::at(url)
    };
    let store = PostgresStore::open(options, Arc::new(Ears::default())).await?;
    store.close().await;
    Ok(())
}

#[tokio::test]
async fn a_server_is_believed_as_far_as_the_url_says() {
    let ours = authority();
    let others = authority();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ours).unwrap();
    let cluster = Cluster::start_tls(&certificate.pem(), &key.serialize_pem());
    let database = cluster.create_database();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let ours = file("ours.pem", ours.pem());
    let others = file("others.pem", others.pem());
    let empty = file("empty.pem", String::new());
    let port = cluster.port();
    let url = |host: &str, rest: &str| {
        format!("postgres://{USER}@{host}:{port}/{database}?sslmode={rest}")
    };

    for (host, rest) in [
        ("127.0.0.1", "disable".to_owned()),
        ("127.0.0.1", "prefer".to_owned()),
        ("127.0.0.1", "require".to_owned()),
        ("127.0.0.1", format!("verify-ca&sslrootcert={ours}")),
        ("localhost", format!("verify-full&sslrootcert={ours}")),
    ] {
        opened(&url(host, &rest)).await.unwrap();
    }
    for (host, rest) in [
        ("127.0.0.1", format!("verify-full&sslrootcert={ours}")),
        ("localhost", format!("verify-full&sslrootcert={others}")),
        ("localhost", format!("verify-ca&sslrootcert={others}")),
        ("localhost", format!("require&sslrootcert={others}")),
        ("localhost", format!("verify-full&sslrootcert={empty}")),
        (
            "localhost",
            "verify-full&sslrootcert=/nowhere.pem".to_owned(),
        ),
        // The machine trusts neither of them.
        ("localhost", "verify-full".to_owned()),
    ] {
        let error = opened(&url(host, &rest)).await.unwrap_err();
        assert!(matches!(error, OpenError::Tls { .. }), "{rest}: {error:?}");
    }
    // A server that does not speak TLS is not used without it.
    let plain = Cluster::shared();
    let rest = format!("127.0.0.1:{}/{}", plain.port(), plain.create_database());
    let error = opened(&format!("postgres://{USER}@{rest}?sslmode=require")).await;
    assert!(matches!(error, Err(OpenError::Tls { .. })), "{error:?}");
    Instance::open(&format!("postgres://{USER}@{rest}")).await;
}
