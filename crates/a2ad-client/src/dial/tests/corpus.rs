use super::*;

/// Every form is refused when it is stored, as text and as a URL, and when it is dialled, which asks neither for a
/// socket nor for a name.
const REFUSED: &[(Reason, &[&str])] = &[
    (
        Reason::Address(Range::Loopback),
        &[
            "http://127.0.0.1/",
            "https://127.0.0.1:8443/hook",
            "http://127.0.0.1./",
            "http://127.255.255.254/",
            "http://127.1/",
            "http://127.1.1/",
            "http://127.0x1/",
            "http://0X7F000001/",
            "http://0000000017700000001/",
            "https://0x7f.00.00.01/",
            "http://127.0.0.1:65535/",
            "http://127.0.0.1?x=1",
            "http://127.0.0.1#@example.com/",
            "https:127.1",
            "http://127.0.1/",
            "http://2130706433/",
            "http://2130706433./",
            "http://0x7f000001/",
            "http://0x7F.1/",
            "http://0x7f.0x0.0x0.0x1/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://0177.0.0.01/",
            "http://00000177.0.0.1/",
            "http://127.0.0.0x1/",
            "http://0x7f.1:80/",
            "http://127。0。0。1/",
            "http://127．0．0．1/",
            "http://127｡0｡0｡1/",
            "http://①②⑦.⓪.⓪.①/",
            "http://１２７.0.0.1/",
            "http://%31%32%37.0.0.1/",
            "http://127.0.0.1%2e/",
            "http:127.0.0.1/",
            "http:/127.0.0.1/",
            "http:///127.0.0.1/",
            "HTTP://127.0.0.1/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[0000::0001]:8080/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:7f00:0001]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
        ],
    ),
    (
        Reason::Address(Range::Private),
        &[
            "http://10.0.0.1/",
            "http://10.255.255.255/",
            "http://10.1/",
            "http://0xA000001/",
            "http://3232235521/",
            "http://0300.0250.0.1/",
            "http://172.16.1/",
            "http://[::ffff:ac10:1]/",
            "http://167772161/",
            "http://0xa.0.0.1/",
            "http://012.0.0.1/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.0.1/",
            "http://192.168.257/",
            "http://0xc0a80001/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::ffff:c0a8:1]/",
            "http://[64:ff9b::10.0.0.1]/",
            "http://[fc00::1]/",
            "http://[fd12:3456:789a::1]/",
            "http://[fec0::1]/",
            "http://[feff::1]/",
        ],
    ),
    (
        Reason::Address(Range::SharedSpace),
        &["http://100.64.0.1/", "http://100.127.255.254/"],
    ),
    (
        Reason::Address(Range::LinkLocal),
        &[
            "http://169.254.0.1/",
            "http://169.254.170.2/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
        ],
    ),
    (
        Reason::Address(Range::Metadata),
        &[
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0xa9.0xfe.0xa9.0xfe/",
            "http://0251.0376.0251.0376/",
            "http://169.254.43518/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://[fd20:ce::254]/",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
        ],
    ),
    (
        Reason::Address(Range::Unspecified),
        &[
            "http://0.0.0.0/",
            "http://0/",
            "http://0x0/",
            "http://0.1.2.3/",
            "http://[::]/",
            "http://[::ffff:0.0.0.0]/",
        ],
    ),
    (
        Reason::Address(Range::Multicast),
        &[
            "http://224.0.0.1/",
            "http://239.255.255.255/",
            "http://[ff02::1]/",
        ],
    ),
    (
        Reason::Address(Range::Example),
        &[
            "http://192.0.2.1/",
            "http://198.18.0.1/",
            "http://198.19.255.255/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
            "http://[2001:db8::1]/",
            "http://[2001:2::1]/",
            "http://[3fff::1]/",
            "http://[3fff:fff::1]/",
        ],
    ),
    (
        Reason::Address(Range::Transition),
        &[
            "http://[::127.0.0.1]/",
            "http://[::7f00:1]/",
            "http://[::2]/",
            "http://[::ffff:0:7f00:1]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[64:ff9b:1::7f00:1]/",
            "http://[64:ff9b:1:ffff::a9fe:a9fe]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:a9fe:a9fe::1]/",
            "http://[2001::1]/",
            "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
            "http://[2606:4700::5efe:7f00:1]/",
            "http://[2606:4700::200:5efe:a00:1]/",
            "http://192.88.99.1/",
        ],
    ),
    (
        Reason::Address(Range::Reserved),
        &[
            "http://192.0.0.1/",
            "http://192.0.0.192/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://4294967295/",
            "http://[100::1]/",
            "http://[5f00::1]/",
            "http://[2001:10::1]/",
            "http://[2001:20::1]/",
            "http://[4000::1]/",
            "http://[64:ff9b:2::1]/",
        ],
    ),
    (
        Reason::LocalName,
        &[
            "http://localhost/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://localhost../",
            "http://api.localhost/",
            "http://foo.bar.localhost/",
            "http://localhost:65535/",
            "http://localhost。/",
            "http://ip6-loopback/",
            "https://ｌｏｃａｌｈｏｓｔ/",
            "http://a.b.localhost.:8080/",
            "http://localhost.localdomain/",
            "http://ip6-localhost/",
            "http://ⓛocalhost/",
            "http://loc%61lhost/",
            "http://local\u{ad}host/",
        ],
    ),
    (
        Reason::MetadataName,
        &[
            "http://metadata.google.internal/computeMetadata/v1/",
            "http://METADATA.google.internal./",
            "http://metadata/",
            "http://instance-data/latest/",
            "http://metadata。google。internal/",
        ],
    ),
    (
        Reason::UserInfo,
        &[
            "http://user@example.com/",
            "http://user:secret@example.com/",
            "http://:secret@example.com/",
            "http://example.com@127.0.0.1/",
            "http://example.com%2f@127.0.0.1/",
            "http://127.0.0.1:80@example.com/",
        ],
    ),
    (
        Reason::Scheme,
        &[
            "ftp://example.com/",
            "file:///etc/passwd",
            "file://localhost/etc/passwd",
            "gopher://example.com:70/_x",
            "data:text/plain,x",
            "javascript:alert(1)",
            "ws://example.com/",
            "unix:/run/x.sock",
            "jar:http://example.com/",
        ],
    ),
    (
        Reason::Port,
        &["http://example.com:0/", "https://example.com:00/"],
    ),
    (
        Reason::Unreadable,
        &[
            "",
            "/hook",
            "//example.com/hook",
            "example.com",
            "http://",
            "http://[::1",
            "http://[fe80::1%1]/",
            "http://[fe80::1%25eth0]/",
            "http://example.com:65536/",
            "http://256.256.256.256/",
            "http://1.2.3.4.5/",
            "http://0x100000000/",
            "http:\\\\127.0.0.1\\",
            "http://example.com\\@127.0.0.1/",
            "http://127.0.0.1\\.example.com/",
            "http://example.com/\r\nhost: evil",
            "http://exa\tmple.com/",
            "http://exam\nple.com/",
            " http://example.com/",
            "http://example.com/ ",
            "http://example.com\0/",
            "http://ex ample.com/",
            "http://example.com%00/",
            "http://example.com%0d%0a/",
        ],
    ),
];

/// What is public stays reachable, however it is spelt.
const PASSED: &[&str] = &[
    "http://example.com/",
    "https://example.com:8443/a?b=c#d",
    "https://bücher.example/",
    "http://example.com./",
    "http://localhost.example.com/",
    "http://notlocalhost/",
    "http://metadata.example.com/",
    "http://8.8.8.8/",
    "http://134744072/",
    "http://172.15.0.1/",
    "http://172.32.0.1/",
    "http://100.63.255.255/",
    "http://100.128.0.1/",
    "http://192.0.1.1/",
    "http://198.17.0.1/",
    "http://198.20.0.1/",
    "http://223.255.255.255/",
    "http://169.253.0.1/",
    "http://[2606:4700::1111]/",
    "http://[2001:4860:4860::8888]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::8.8.8.8]/",
    "http://[3ffe::1]/",
];

#[test]
fn every_refused_form_is_refused_when_it_is_stored() {
    let dialer = Dialer::guarded(Rules::default()).unwrap();
    let mut forms = 0;
    for (reason, urls) in REFUSED {
        for text in *urls {
            forms += 1;
            let refused = dialer.admit(text).map_err(|refused| refused.reason);
            assert_eq!(refused, Err(*reason), "{text:?}");
            // A caller that parsed it by itself fares no better, unless parsing has repaired it into something good.
            if let Ok(url) = Url::parse(text)
                && *reason != Reason::Unreadable
            {
                assert_eq!(dialer.judge(&url).unwrap_err().reason, *reason, "{text:?}");
            }
        }
    }
    assert!(forms >= 60, "{forms}");
}

#[tokio::test]
async fn every_refused_form_is_refused_when_it_is_dialled() {
    let seam = Arc::new(NoSocket::default());
    let resolver = Answers::new(&[&["8.8.8.8"]]);
    let dialer = guarded(resolver.clone(), seam.clone());
    let mut dialled = 0;
    for (reason, urls) in REFUSED {
        for text in *urls {
            // Some forms are no URI for the `http` crate; what `Url` makes of them then is what a caller could send,
            // unless that has repaired them into something good.
            let parsed = Url::parse(text).ok().map(String::from);
            let parsed = parsed.filter(|_| *reason != Reason::Unreadable);
            for text in [Some((*text).to_owned()), parsed].into_iter().flatten() {
                let Ok(request) = Request::get(text.as_str()).body(Bytes::new()) else {
                    continue;
                };
                for answer in [
                    dialer.send(request.clone(), &Limits::default()).await,
                    dialer.send_h2(request, &Limits::default()).await,
                ] {
                    assert!(
                        matches!(answer, Err(DialError::Refused(_))),
                        "{text}: {answer:?}"
                    );
                    dialled += 1;
                }
            }
        }
    }
    assert!(dialled >= 400, "{dialled}");
    assert_eq!(seam.asked.load(Ordering::SeqCst), 0);
    assert_eq!(resolver.asked(), 0);
}

#[tokio::test]
async fn a_public_host_is_dialled() {
    let seam = Arc::new(NoSocket::default());
    let dialer = guarded(Answers::new(&[&["8.8.8.8"]]), seam.clone());
    for (index, text) in PASSED.iter().enumerate() {
        let url = dialer.admit(text).unwrap();
        let answer = dialer.send(get(url.as_str()), &Limits::default()).await;
        assert!(
            matches!(answer, Err(DialError::Connect { .. })),
            "{text}: {answer:?}"
        );
        assert_eq!(seam.asked.load(Ordering::SeqCst), index + 1, "{text}");
    }
}

#[tokio::test]
async fn a_url_is_not_endless() {
    let dialer = Dialer::guarded(Rules::default()).unwrap();
    let url = format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX));
    assert_eq!(dialer.admit(&url).unwrap_err().reason, Reason::TooLong);
    let parsed = Url::parse(&url).unwrap();
    assert_eq!(dialer.judge(&parsed).unwrap_err().reason, Reason::TooLong);
    let answer = dialer.send(get(&url), &Limits::default()).await;
    assert!(matches!(answer, Err(DialError::Refused(_))), "{answer:?}");
    dialer.admit(&url[..URL_BYTES_MAX]).unwrap();
}

#[test]
fn a_refusal_tells_no_secret() {
    let dialer = Dialer::guarded(Rules::default()).unwrap();
    for url in [
        "http://user:secret@example.com/",
        "http://127.0.0.1/secret?token=secret#secret",
        "ftp://secret@example.com/secret",
        "http://example.com\\secret",
    ] {
        let refused = dialer.admit(url).unwrap_err();
        assert!(
            !format!("{refused} {refused:?}").contains("secret"),
            "{refused:?}"
        );
    }
}
