use super::*;

const PUBLIC: &str = "8.8.8.8";
const PUBLIC_V6: &str = "2606:4700::1111";

/// Two hosts: a public one, and this machine, which nobody must reach.
struct World {
    internet: Arc<Internet>,
    visits: Arc<AtomicUsize>,
    sink: Sink,
}

fn world() -> World {
    let (host, visits) = public_host();
    let sink = Sink::new();
    let bad = sink.address();
    let internet = Internet::new([
        (PUBLIC, host),
        (PUBLIC_V6, host),
        ("127.0.0.1", bad),
        ("10.0.0.1", bad),
        ("::1", bad),
        ("::ffff:127.0.0.1", bad),
        ("169.254.169.254", bad),
    ]);
    World {
        internet,
        visits,
        sink,
    }
}

async fn dial(dialer: &Dialer) -> Result<u16, DialError> {
    let limits = Limits::default();
    let answer = dialer.send(get("http://flip.example/"), &limits).await;
    answer.map(|answer| answer.status().as_u16())
}

#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection() {
    let world = world();
    let resolver = Answers::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let dialer = guarded(resolver.clone(), world.internet.clone());
    assert_eq!(dial(&dialer).await, Ok(204));
    assert_eq!(resolver.asked(), 1);
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    world.sink.saw_nothing();
}

#[tokio::test]
async fn a_name_that_turns_bad_is_refused() {
    let world = world();
    let resolver = Answers::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let dialer = guarded(resolver.clone(), world.internet.clone());
    dialer.admit("http://flip.example/").unwrap();
    assert_eq!(dial(&dialer).await, Ok(204));
    for _ in 0..3 {
        let refused = Refused {
            host: "flip.example".into(),
            reason: Reason::Resolved(Range::Loopback),
        };
        assert_eq!(dial(&dialer).await, Err(refused.into()));
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    world.sink.saw_nothing();
}

#[tokio::test]
async fn one_bad_address_refuses_all() {
    for answer in [
        &[PUBLIC, "127.0.0.1"][..],
        &["127.0.0.1", PUBLIC],
        &[PUBLIC_V6, "127.0.0.1"],
        &[PUBLIC, "::1"],
        &[PUBLIC, "::ffff:127.0.0.1"],
        &[PUBLIC, PUBLIC_V6, PUBLIC, "10.0.0.1"],
        // Also one that would not have been tried.
        &[
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            PUBLIC,
            "169.254.169.254",
        ],
    ] {
        let world = world();
        let dialer = guarded(Answers::new(&[answer]), world.internet.clone());
        let refused = dial(&dialer).await;
        assert!(
            matches!(refused, Err(DialError::Refused(_))),
            "{answer:?}: {refused:?}"
        );
        assert!(world.internet.judged.lock().unwrap().is_empty());
        assert_eq!(world.visits.load(Ordering::SeqCst), 0);
        world.sink.saw_nothing();
    }
}

#[tokio::test]
async fn ten_tries_over_a_changing_name_never_reach_this_machine() {
    let world = world();
    let turns: &[&[&str]] = &[
        &[PUBLIC],
        &["127.0.0.1"],
        &[PUBLIC, "127.0.0.1"],
        &[PUBLIC_V6],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &[PUBLIC],
        &["169.254.169.254"],
        &["10.0.0.1", PUBLIC],
        &["127.0.0.1"],
    ];
    let resolver = Answers::new(turns);
    let dialer = guarded(resolver.clone(), world.internet.clone());
    for (turn, answer) in turns.iter().enumerate() {
        let good = answer.iter().all(|ip| [PUBLIC, PUBLIC_V6].contains(ip));
        let got = dial(&dialer).await;
        assert_eq!(got.is_ok(), good, "{answer:?}: {got:?}");
        assert_eq!(resolver.asked(), turn + 1);
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 3);
    world.sink.saw_nothing();
}

#[tokio::test]
async fn every_bad_address_behind_a_name_is_refused() {
    let bad = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.9.9.9",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];
    for address in bad {
        let seam = Arc::new(Internet::default());
        let resolver = Answers::new(&[&[address]]);
        let dialer = guarded(resolver.clone(), seam.clone());
        let refused = dial(&dialer).await;
        assert!(
            matches!(refused, Err(DialError::Refused(_))),
            "{address}: {refused:?}"
        );
        assert_eq!(resolver.asked(), 1);
        assert!(seam.judged.lock().unwrap().is_empty(), "{address}");
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_not_resolved() {
    let world = world();
    let dialer = guarded(Answers::new(&[&[]]), world.internet.clone());
    assert!(matches!(
        dial(&dialer).await,
        Err(DialError::Unresolved { .. })
    ));
}

#[tokio::test]
async fn a_client_that_was_given_away_is_guarded_too() {
    let sink = Sink::new();
    let rules = Rules {
        endpoints: vec![("models.example".into(), 8000)],
        ..Rules::default()
    };
    let resolver = Answers::new(&[&["127.0.0.1"]]);
    let internet = Internet::new([("127.0.0.1", sink.address())]);
    let dialer = with_rules(rules, resolver.clone(), internet.clone());
    for own in [
        "https://models.example.com/",
        "http://models.example:8000/v1",
    ] {
        let client = dialer.client_for(&own.parse().unwrap()).unwrap();
        let port = sink.address().port();
        for url in [
            format!("http://127.0.0.1:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            format!("http://2130706433:{port}/"),
            format!("https://127.1:{port}/"),
            format!("http://localhost:{port}/"),
            "http://flip.example/".into(),
            "http://models.example/".into(),
            "http://models.example:8001/".into(),
        ] {
            let request = client.get(&url).timeout(Duration::from_millis(500));
            request.send().await.unwrap_err();
            sink.saw_nothing();
        }
    }
    let strangers = dialer.client_for(&"http://127.0.0.1/".parse().unwrap());
    assert_eq!(
        strangers.unwrap_err().reason,
        Reason::Address(Range::Loopback)
    );
    // And it works where it should.
    assert_eq!(internet.judged.lock().unwrap().len(), 0);
    let own: Url = "http://models.example:8000/v1".parse().unwrap();
    let client = dialer.client_for(&own).unwrap();
    let request = client.get(own).timeout(Duration::from_millis(50));
    request.send().await.unwrap_err();
    assert_eq!(internet.judged.lock().unwrap().len(), 1);
}
