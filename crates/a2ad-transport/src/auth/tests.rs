use super::*;

fn principal(name: &str) -> Principal {
    Principal {
        owner: name.parse().unwrap(),
        scopes: vec![Scope::Agents],
    }
}

fn auth() -> Auth {
    let credential = |kind, digest, name: &str| Credential {
        kind,
        digest,
        principal: Arc::new(principal(name)),
    };
    let auth = Auth {
        required: true,
        token_header: Some(HeaderName::from_static("x-sb-token")),
        kinds: vec![Kind::Bearer, Kind::Basic, Kind::ApiKey],
        ..Auth::off()
    };
    auth.replace(vec![
        credential(Kind::Bearer, Digest::of(b"s3cret"), "token:alice"),
        credential(
            Kind::Basic,
            Digest::of_pair("bob", "pass:word"),
            "basic:bob",
        ),
        credential(Kind::ApiKey, Digest::of(b"k3y"), "key:ci"),
    ]);
    auth
}

fn ask(auth: &Auth, lines: &[(&str, &str)]) -> Result<String, Unknown> {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    auth.identify(&headers)
        .map(|principal| principal.owner.as_str().to_owned())
}

#[test]
fn one_good_credential_is_enough() {
    let auth = auth();
    for (lines, owner) in [
        (&[("authorization", "Bearer s3cret")][..], "token:alice"),
        (&[("authorization", "bEARER   s3cret")], "token:alice"),
        (&[("x-sb-token", "s3cret")], "token:alice"),
        // bob:pass:word
        (
            &[("authorization", "Basic Ym9iOnBhc3M6d29yZA==")],
            "basic:bob",
        ),
        (&[("x-api-key", "k3y")], "key:ci"),
        (
            &[("authorization", "Negotiate x"), ("x-api-key", "k3y")],
            "key:ci",
        ),
        (
            &[("authorization", "Bearer s3cret"), ("x-api-key", "wrong")],
            "token:alice",
        ),
    ] {
        assert_eq!(ask(&auth, lines).as_deref(), Ok(owner), "{lines:?}");
    }
}

#[test]
fn a_bad_credential_is_nobody() {
    let auth = auth();
    let long = "x".repeat(5000);
    for (lines, why) in [
        (&[][..], Unknown::Nothing),
        (&[("authorization", "")], Unknown::Scheme),
        (&[("authorization", "Bearer")], Unknown::Malformed),
        (&[("authorization", "Bearer ")], Unknown::Malformed),
        (&[("authorization", "Bearer wrong")], Unknown::Wrong),
        (&[("authorization", "Bearer S3cret")], Unknown::Wrong),
        (&[("authorization", "Bearer s3cret s3cret")], Unknown::Wrong),
        (&[("authorization", "s3cret")], Unknown::Scheme),
        (&[("authorization", "Digest s3cret")], Unknown::Scheme),
        // A key is no token, and a token is no key.
        (&[("authorization", "Bearer k3y")], Unknown::Wrong),
        (&[("x-api-key", "s3cret")], Unknown::Wrong),
        (&[("x-sb-token", "k3y")], Unknown::Wrong),
        (&[("x-sb-token", "Bearer s3cret")], Unknown::Wrong),
        (&[("x-api-key", "")], Unknown::Malformed),
        (&[("authorization", "Basic !")], Unknown::Malformed),
        // "bob", ":x", "bob:"
        (&[("authorization", "Basic Ym9i")], Unknown::Malformed),
        (&[("authorization", "Basic Ong=")], Unknown::Malformed),
        (&[("authorization", "Basic Ym9iOg==")], Unknown::Malformed),
        (
            &[
                ("authorization", "Bearer s3cret"),
                ("authorization", "Bearer s3cret"),
            ],
            Unknown::Twice,
        ),
        (
            &[("x-api-key", "k3y"), ("x-api-key", "k3y")],
            Unknown::Twice,
        ),
        (&[("authorization", long.as_str())], Unknown::TooLong),
    ] {
        assert_eq!(ask(&auth, lines), Err(why), "{lines:?}");
    }
}

#[test]
fn without_authentication_everybody_is_the_same_nobody() {
    let owner = ask(&Auth::off(), &[("authorization", "Bearer x")]);
    assert_eq!(owner.as_deref(), Ok("anonymous"));
}

#[test]
fn when_the_last_credential_is_gone_nobody_gets_in() {
    let auth = auth();
    auth.replace(Vec::new());
    let asked = ask(&auth, &[("authorization", "Bearer s3cret")]);
    assert_eq!(asked, Err(Unknown::Wrong));
}

#[test]
fn scopes_are_read_as_they_are_written() {
    for text in ["agents", "agents:echo", "admin", "worker", "monitor"] {
        let scope: Scope = text.parse().unwrap();
        assert_eq!(scope.to_string(), text);
    }
    for text in ["", "agent", "agents:", "agents:-", "Admin", "*"] {
        assert!(text.parse::<Scope>().is_err(), "{text}");
    }
    let one = Principal {
        scopes: vec!["agents:echo".parse().unwrap()],
        ..principal("token:x")
    };
    assert!(one.may_call(&"echo".parse().unwrap()));
    assert!(!one.may_call(&"other".parse().unwrap()));
    assert!(!one.may_monitor());
}

#[test]
fn digests_are_stored_as_hexadecimal_and_never_shown() {
    let digest = Digest::of(b"s3cret");
    assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
    for text in ["", "00", &"g".repeat(64), &"ä".repeat(32), &"+1".repeat(32)] {
        assert_eq!(Digest::from_hex(text), None, "{text}");
    }
    assert!(!format!("{digest:?}").contains(&digest.to_hex()[..8]));
}
