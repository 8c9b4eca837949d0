use super::*;

fn dialer(rules: Rules) -> Dialer {
    Dialer::guarded(rules).unwrap()
}

fn reason(dialer: &Dialer, url: &str) -> Option<Reason> {
    dialer.admit(url).err().map(|refused| refused.reason)
}

#[test]
fn a_list_of_hosts_refuses_the_others() {
    let dialer = dialer(Rules {
        hosts: [
            "Hooks.example.com",
            "example.net:8443",
            "*.example.org",
            "*.example.info:444",
            "8.8.8.8",
            "[2606:4700::1111]:443",
            "2606:4700::1112",
            "bücher.example",
            "127.0.0.1",
        ]
        .map(String::from)
        .into(),
        ..Rules::default()
    });
    for url in [
        "https://hooks.example.com/",
        "https://HOOKS.example.com.:9000/",
        "https://example.net:8443/",
        "https://a.example.org/",
        "https://a.b.example.org:1/",
        "https://a.example.info:444/",
        "https://8.8.8.8/",
        "https://134744072/",
        "https://[::ffff:8.8.8.8]/",
        "https://[2606:4700::1111]/",
        "https://[2606:4700::1112]:1/",
        "https://xn--bcher-kva.example/",
    ] {
        assert_eq!(reason(&dialer, url), None, "{url}");
    }
    for url in [
        "https://example.com/",
        "https://a.hooks.example.com/",
        "https://xhooks.example.com/",
        "https://hooks.example.com.evil.example/",
        "https://example.net/",
        "https://example.net:8444/",
        "https://example.org/",
        "https://xexample.org/",
        "https://.example.org/",
        "https://a.example.info/",
        "https://8.8.4.4/",
        "https://[2606:4700::1111]:444/",
    ] {
        assert_eq!(reason(&dialer, url), Some(Reason::NotListed), "{url}");
    }
    // To be listed is not to be public.
    let loopback = Some(Reason::Address(Range::Loopback));
    assert_eq!(reason(&dialer, "https://127.0.0.1/"), loopback);
}

#[test]
fn a_list_that_cannot_be_read_makes_no_dialer() {
    for host in [
        "",
        "*",
        "*.",
        ".",
        "*.*.com",
        "a.*.com",
        "http://example.com",
        "example.com/x",
        "user@example.com",
        "example.com:0",
        "example.com:65536",
        "example.com:x",
        "*.10.0.0.1",
        "[::1",
        "ex ample.com",
        "example.com:",
        "%65xample.com",
    ] {
        let made = Dialer::guarded(Rules {
            hosts: vec![host.into()],
            ..Rules::default()
        });
        assert!(matches!(made, Err(BuildError::HostRule(_))), "{host:?}");
    }
    for endpoint in [
        ("", 1),
        ("example.com", 0),
        ("example.com:80", 80),
        ("*.example.com", 80),
    ] {
        let made = Dialer::guarded(Rules {
            endpoints: vec![(endpoint.0.into(), endpoint.1)],
            ..Rules::default()
        });
        assert!(matches!(made, Err(BuildError::HostRule(_))), "{endpoint:?}");
    }
}

#[test]
fn tls_may_be_demanded() {
    let dialer = dialer(Rules {
        https_only: true,
        ..Rules::default()
    });
    assert_eq!(reason(&dialer, "https://example.com/"), None);
    assert_eq!(
        reason(&dialer, "http://example.com/"),
        Some(Reason::PlainHttp)
    );
    assert_eq!(
        reason(&dialer, "http://example.com:443/"),
        Some(Reason::PlainHttp)
    );
}

#[tokio::test]
async fn private_hosts_may_be_allowed_but_the_cloud_is_not_private() {
    let rules = Rules {
        allow_private: true,
        ..Rules::default()
    };
    let judging = dialer(rules.clone());
    for url in [
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://[::1]/",
        "http://[fd00::1]/",
        "http://localhost:8080/",
    ] {
        assert_eq!(reason(&judging, url), None, "{url}");
    }
    for url in [
        "http://169.254.169.254/",
        "http://169.254.1.1/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://metadata.google.internal/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://[2002:a00:1::]/",
    ] {
        assert!(reason(&judging, url).is_some(), "{url}");
    }
    let internet = Arc::new(Internet::default());
    let resolver = Answers::new(&[&["10.0.0.1", "8.8.8.8"], &["10.0.0.1", "169.254.169.254"]]);
    let dialer = with_rules(rules, resolver, internet.clone());
    let limits = Limits::default();
    let passed = dialer.send(get("http://intranet/"), &limits).await;
    assert!(
        matches!(passed, Err(DialError::Connect { .. })),
        "{passed:?}"
    );
    let refused = dialer.send(get("http://intranet/"), &limits).await;
    assert!(matches!(refused, Err(DialError::Refused(_))), "{refused:?}");
    assert_eq!(internet.judged.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_endpoint_is_allowed_with_its_port_only() {
    let rules = Rules {
        hosts: vec!["example.com".into()],
        https_only: true,
        endpoints: vec![("models".into(), 8000), ("::1".into(), 8000)],
        ..Rules::default()
    };
    let internet = Arc::new(Internet::default());
    let dialer = with_rules(rules, Answers::new(&[&["127.0.0.1"]]), internet.clone());
    for url in [
        "http://models:8000/",
        "http://MODELS.:8000/v1",
        "http://[0::1]:8000/",
    ] {
        assert_eq!(reason(&dialer, url), None, "{url}");
    }
    for url in [
        "http://models/",
        "http://models:8001/",
        "https://models/",
        "http://a.models:8000/",
    ] {
        assert!(reason(&dialer, url).is_some(), "{url}");
    }
    // The name leads to this machine, which is fine for this port.
    let passed = dialer
        .send(get("http://models:8000/"), &Limits::default())
        .await;
    assert!(
        matches!(passed, Err(DialError::Connect { .. })),
        "{passed:?}"
    );
    assert_eq!(internet.judged.lock().unwrap().len(), 1);
}

#[test]
fn an_unguarded_dialer_still_wants_a_proper_url() {
    let dialer = Dialer::unguarded().unwrap();
    for url in [
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "http://10.0.0.1/",
    ] {
        assert_eq!(reason(&dialer, url), None, "{url}");
    }
    for (url, why) in [
        ("ftp://example.com/", Reason::Scheme),
        ("http://user@localhost/", Reason::UserInfo),
        ("http://localhost:0/", Reason::Port),
        ("http://localhost\\", Reason::Unreadable),
    ] {
        assert_eq!(reason(&dialer, url), Some(why), "{url}");
    }
}
