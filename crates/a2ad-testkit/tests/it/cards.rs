//! Agent cards: what they say, where they are, and how they are cached.

use a2ad_proto::pb::Message as _;
use a2ad_server::StartError;
use a2ad_testkit::http::Answer;
use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, try_start};

const CARD: &str = "/.well-known/agent-card.json";
const LEGACY: &str = "/.well-known/agent.json";

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer
        .headers
        .get(name)
        .map(|value| value.to_str().unwrap())
}

/// The interfaces of 1.0. Those of 0.3 come behind them.
fn urls(card: &Value) -> Vec<(&str, &str)> {
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let version = |it: &Value| it["protocolVersion"].as_str().unwrap().to_owned();
    assert!(interfaces.iter().map(version).is_sorted_by(|a, b| a >= b));
    interfaces
        .iter()
        .filter(|it| it["protocolVersion"] == "1.0")
        .map(|it| {
            (
                it["protocolBinding"].as_str().unwrap(),
                it["url"].as_str().unwrap(),
            )
        })
        .collect()
}

/// A-03, A-04, A-05, A-08, A-09, A-15, DUAL-05, CARD-01, CARD-02: complete by itself, with what is really served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn card_01_an_agent_that_says_nothing_still_has_a_whole_card() {
    let server = Configured::start("agents: [{id: parrot, echo: }]").await;
    let answer = server.get(CARD, &[]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(header(&answer, "content-type"), Some("application/json"));
    let card = answer.json();
    assert_eq!(card["name"], "parrot");
    assert_eq!(card["version"], "1.0.0");
    assert!(!card["description"].as_str().unwrap().is_empty());
    assert_eq!(
        card["skills"],
        json!([{"id": "chat", "name": "Chat", "description": "General chat.", "tags": ["chat"]}])
    );
    let capabilities = &card["capabilities"];
    assert_eq!(capabilities["streaming"], true);
    assert_eq!(capabilities["pushNotifications"], false);
    assert_eq!(capabilities["extendedAgentCard"], false);
    assert_eq!(capabilities["extensions"][0]["uri"], "urn:a2ad:replay:v1");
    let base = format!("http://{}", server.handle.addr());
    assert_eq!(
        base,
        server.handle.url(),
        "the port that was found for port 0"
    );
    let root = format!("{base}/");
    let grpc = server.handle.addr().to_string();
    assert_eq!(
        urls(&card),
        [
            ("JSONRPC", root.as_str()),
            ("HTTP+JSON", base.as_str()),
            ("GRPC", grpc.as_str())
        ]
    );
    // DUAL-05: the same addresses for 0.3, in its own members too.
    let older: Vec<Value> = card["supportedInterfaces"].as_array().unwrap()[3..].to_vec();
    let expected = [
        ("JSONRPC", root.as_str()),
        ("HTTP+JSON", base.as_str()),
        ("GRPC", grpc.as_str()),
    ]
    .map(
        |(binding, url)| json!({"url": url, "protocolBinding": binding, "protocolVersion": "0.3"}),
    );
    assert_eq!(older, expected);
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!(card["url"], root);
    assert_eq!(card["preferredTransport"], "JSONRPC");
    assert_eq!(
        card["additionalInterfaces"],
        json!([{"url": base, "transport": "HTTP+JSON"}, {"url": grpc, "transport": "GRPC"}])
    );
}

/// A-01, A-02.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_has_its_card_at_all_its_addresses() {
    let server = Configured::start(
        "agents: [{id: one, echo: }, {id: two, name: Second, echo: }, {id: inside, expose: false, echo: }]",
    )
    .await;
    let first = server.get(CARD, &[]).await.body;
    for path in [
        LEGACY,
        "/a2a/.well-known/agent-card.json",
        "/one/.well-known/agent.json",
    ] {
        assert_eq!(server.get(path, &[]).await.body, first, "{path}");
    }
    let path = format!("/agents/two{CARD}");
    let second = server.get(&path, &[]).await;
    for path in [
        format!("/agents/two{LEGACY}"),
        format!("/a2a/agents/two{CARD}"),
        format!("/two{CARD}"),
        format!("/a2a/two{LEGACY}"),
    ] {
        assert_eq!(server.get(&path, &[]).await.body, second.body, "{path}");
    }
    let card = second.json();
    assert_eq!(card["name"], "Second");
    let url = format!("{}/agents/two", server.handle.url());
    let grpc = server.handle.addr().to_string();
    assert_eq!(
        urls(&card),
        [
            ("JSONRPC", url.as_str()),
            ("HTTP+JSON", url.as_str()),
            ("GRPC", grpc.as_str())
        ]
    );
    // 0.3 knows no tenants, so that gRPC is not for it.
    assert_eq!(card["url"], url);
    let other = json!([{"url": url, "transport": "HTTP+JSON"}]);
    assert_eq!(card["additionalInterfaces"], other);
    // gRPC has no paths, so its requests have to say whom they are for.
    let interfaces = &card["supportedInterfaces"];
    assert_eq!(interfaces[2]["tenant"], "two");
    assert!(interfaces[0].get("tenant").is_none() && interfaces[1].get("tenant").is_none());
    for path in [
        format!("/inside{CARD}"),
        format!("/agents/inside{CARD}"),
        format!("/x{CARD}"),
    ] {
        assert_eq!(server.get(&path, &[]).await.status, 404, "{path}");
    }
}

const WHOLE: &str = "
name: From the file
description: Written elsewhere
version: 3.1.4
provider: {organization: Example, url: https://example.com}
documentation_url: https://example.com/docs
iconUrl: https://example.com/icon.png
protocolVersion: 0.3.0
default_input_modes: [text/plain, image/png]
defaultOutputModes: [text/plain]
capabilities:
  streaming: false
  stateTransitionHistory: true
  extensions:
    - {uri: 'https://example.com/ext/v1', description: Ours, required: true, params: {depth: 3}}
securitySchemes:
  key: {apiKeySecurityScheme: {location: header, name: X-Key}}
security_requirements: [{schemes: {key: {list: []}}}]
skills:
  - id: draw
    name: Draw
    description: Draws
    tags: [art]
    examples: [Draw a cat]
    inputModes: [text/plain]
    output_modes: [image/png]
supportedInterfaces: [{url: 'https://elsewhere.test/', protocolBinding: JSONRPC, protocolVersion: '1.0'}]
";

fn check_whole(card: &Value) {
    assert_eq!(card["name"], "From the file");
    assert_eq!(card["version"], "3.1.4");
    assert_eq!(
        card["provider"],
        json!({"organization": "Example", "url": "https://example.com"})
    );
    assert_eq!(card["documentationUrl"], "https://example.com/docs");
    assert_eq!(card["iconUrl"], "https://example.com/icon.png");
    assert_eq!(
        card["defaultInputModes"],
        json!(["text/plain", "image/png"])
    );
    assert_eq!(card["defaultOutputModes"], json!(["text/plain"]));
    assert_eq!(card["capabilities"]["streaming"], false);
    assert_eq!(
        card["capabilities"]["extensions"][0],
        json!({"uri": "https://example.com/ext/v1", "description": "Ours", "required": true, "params": {"depth": 3}})
    );
    assert_eq!(
        card["capabilities"]["extensions"][1]["uri"],
        "urn:a2ad:replay:v1"
    );
    assert_eq!(
        card["securitySchemes"]["key"]["apiKeySecurityScheme"],
        json!({"location": "header", "name": "X-Key"})
    );
    assert_eq!(
        card["securityRequirements"],
        json!([{"schemes": {"key": {}}}])
    );
    assert_eq!(
        card["skills"],
        json!([{"id": "draw", "name": "Draw", "description": "Draws", "tags": ["art"],
            "examples": ["Draw a cat"], "inputModes": ["text/plain"], "outputModes": ["image/png"]}])
    );
    assert!(!card.to_string().contains("elsewhere.test"));
    assert_eq!(card["protocolVersion"], "0.3.0", "not what the file says");
}

/// A-06, A-07, A-14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_comes_from_a_file_or_from_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("card.yaml"), WHOLE).unwrap();
    let yaml = "agents: [{id: a, card: card.yaml, echo: }]";
    let server = try_start(yaml, folder).await.unwrap();
    let from_yaml = server.get(CARD, &[]).await.json();
    check_whole(&from_yaml);

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("card.json"), from_yaml.to_string()).unwrap();
    let yaml = "agents: [{id: a, card: card.json, echo: }]";
    let server = try_start(yaml, folder).await.unwrap();
    check_whole(&server.get(CARD, &[]).await.json());

    let indented = WHOLE.replace('\n', "\n      ");
    let yaml = format!("agents:\n  - id: a\n    echo:\n    card:{indented}\n");
    let server = Configured::start(&yaml).await;
    check_whole(&server.get(CARD, &[]).await.json());
}

/// A-07: a card as LightSpeed Stack has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_07_a_card_file_of_0_3_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = "
name: Helper
description: Helps
protocolVersion: 0.3.0
provider: {organization: Example, url: 'https://example.com'}
capabilities: {streaming: true, pushNotifications: false, stateTransitionHistory: false}
default_input_modes: [text/plain]
skills: [{id: help, name: Help, description: Helps, tags: [help], inputModes: [text/plain]}]
security: [{bearer: []}]
security_schemes: {bearer: {type: http, scheme: bearer}}
";
    std::fs::write(folder.path().join("card.yaml"), file).unwrap();
    let yaml = "agents: [{id: a, card: card.yaml, echo: }]";
    let server = try_start(yaml, folder).await.unwrap();
    let card = server.get(CARD, &[]).await.json();
    assert_eq!(card["provider"]["organization"], "Example");
    assert_eq!(card["defaultInputModes"], json!(["text/plain"]));
    let scheme = json!({
        "httpAuthSecurityScheme": {"scheme": "bearer"}, "type": "http", "scheme": "bearer",
    });
    assert_eq!(card["securitySchemes"]["bearer"], scheme);
    assert_eq!(
        card["securityRequirements"],
        json!([{"schemes": {"bearer": {}}}])
    );
    assert_eq!(card["security"], json!([{"bearer": []}]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agents_own_keys_win_over_its_card() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("card.yaml"), WHOLE).unwrap();
    let yaml = "agents: [{id: a, name: Mine, description: Better, version: '4', streaming: true, extended_card: true, \
                skills: [{id: s, name: S, description: Sings, input-modes: [audio/wav]}], card: card.yaml, echo: }]";
    let server = try_start(yaml, folder).await.unwrap();
    let card = server.get(CARD, &[]).await.json();
    assert_eq!(card["name"], "Mine");
    assert_eq!(card["description"], "Better");
    assert_eq!(card["version"], "4");
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    assert_eq!(
        card["skills"],
        json!([{"id": "s", "name": "S", "description": "Sings", "tags": ["s"], "inputModes": ["audio/wav"]}])
    );
}

/// A-07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_that_cannot_be_served_says_why_at_the_start() {
    let refused = async |file: Option<&str>, yaml: &str| {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = file {
            std::fs::write(folder.path().join("card.yaml"), text).unwrap();
        }
        let error: StartError = try_start(yaml, folder).await.err().unwrap();
        error.to_string()
    };
    let from_file = "agents: [{id: a, card: card.yaml, echo: }]";
    let text = refused(None, from_file).await;
    assert!(
        text.starts_with("Unable to read agent card file '/"),
        "{text}"
    );
    assert!(text.contains("card.yaml': No such file"), "{text}");
    for wrong in [
        "[",
        "name: {",
        "- a",
        "5",
        "skills: {}",
        "version: [1]",
        "capabilities: {streaming: often}",
    ] {
        let text = refused(Some(wrong), from_file).await;
        assert!(
            text.starts_with("Invalid YAML in agent card file '/"),
            "{wrong}: {text}"
        );
        assert!(text.lines().count() == 1, "{text}");
    }
    for (card, word) in [
        ("{capabilities: {extensions: [{uri: 'a b'}]}}", "a b"),
        ("{capabilities: {extensions: [{uri: ''}]}}", "uri"),
        ("{capabilities: {pushNotifications: true}}", "push"),
        ("{skills: [{name: S}]}", "no id"),
        (
            "{securitySchemes: {k: {type: handshake}}}",
            "securitySchemes.k",
        ),
    ] {
        let text = refused(None, &format!("agents: [{{id: a, card: {card}, echo: }}]")).await;
        assert!(text.contains("`a`") && text.contains(word), "{text}");
    }
    let text = refused(None, "agents: [{id: a, push: true, echo: }]").await;
    assert!(text.contains("not supported yet"), "{text}");
}

/// CARD-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn card_05_a_card_that_is_known_is_not_sent_again() {
    let server = Configured::start("agents: [{id: parrot, echo: }]").await;
    let answer = server.get(CARD, &[]).await;
    let tag = header(&answer, "etag").unwrap().to_owned();
    assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{tag}");
    let since = header(&answer, "last-modified").unwrap().to_owned();
    let max_age = header(&answer, "cache-control").unwrap();
    assert!(max_age.contains("max-age="), "{max_age}");
    let strong = tag.trim_start_matches("W/");
    let list = format!("\"x\", {tag}, \"y\"");
    for path in [CARD, LEGACY] {
        for headers in [
            [("if-none-match", tag.as_str())],
            [("if-none-match", strong)],
            [("if-none-match", list.as_str())],
            [("if-none-match", "*")],
            [("if-modified-since", since.as_str())],
            [("if-modified-since", "Thu, 01 Jan 2099 00:00:00 GMT")],
        ] {
            for verb in [Method::GET, Method::HEAD] {
                let known = server.call(verb, path, &headers, "").await;
                assert_eq!(known.status, 304, "{headers:?}");
                assert!(known.body.is_empty());
                for name in [
                    "etag",
                    "last-modified",
                    "cache-control",
                    "access-control-allow-origin",
                ] {
                    assert_eq!(header(&known, name), header(&answer, name), "{name}");
                }
            }
        }
        for headers in [
            &[("if-none-match", "\"x\"")][..],
            &[
                ("if-none-match", "W/\"x\""),
                ("if-modified-since", since.as_str()),
            ],
            &[("if-none-match", "")],
            &[("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")],
            &[("if-modified-since", "yesterday")],
        ] {
            let fresh = server.get(path, headers).await;
            assert_eq!(
                (fresh.status.as_u16(), &fresh.body),
                (200, &answer.body),
                "{headers:?}"
            );
        }
    }
}

/// CARD-01, VER-06.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_can_be_looked_at_from_anywhere() {
    let server = Configured::start("agents: [{id: parrot, echo: }]").await;
    let answer = server.get(CARD, &[("origin", "https://site.test")]).await;
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"));
    let head = server.call(Method::HEAD, CARD, &[], "").await;
    let length = answer.body.len().to_string();
    assert_eq!(header(&head, "content-length"), Some(length.as_str()));
    assert_eq!(header(&head, "etag"), header(&answer, "etag"));
    let asked = [
        ("origin", "https://site.test"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "a2a-version"),
    ];
    let preflight = server.call(Method::OPTIONS, CARD, &asked, "").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(header(&preflight, "access-control-allow-origin"), Some("*"));
    assert_eq!(
        header(&preflight, "access-control-allow-methods"),
        Some("GET, HEAD")
    );
    assert!(
        header(&preflight, "access-control-allow-headers")
            .unwrap()
            .contains('*')
    );
    // VER-06: it is one document for every generation.
    for version in ["0.3", "99.0", "x"] {
        let headers = [("a2a-version", version)];
        let addr = server.handle.addr();
        let answer = a2ad_testkit::http::call(addr, Method::GET, CARD, &headers, "").await;
        assert_eq!(answer.unwrap().status, 200);
    }
}

/// A-09.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_follow_from_the_public_url_or_a_trusted_proxy() {
    let forwarded = [
        ("x-forwarded-host", "agents.test"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-prefix", "/a"),
    ];
    let ask = async |yaml: &str| {
        let server = Configured::start(yaml).await;
        let plain = server.get(CARD, &[]).await;
        let proxied = server.get(CARD, &forwarded).await;
        let card = proxied.json();
        let url = card["supportedInterfaces"][1]["url"]
            .as_str()
            .unwrap()
            .to_owned();
        // A tag is that of the bytes it came with.
        let same = plain.body == proxied.body;
        assert_eq!(same, header(&plain, "etag") == header(&proxied, "etag"));
        (
            url,
            header(&proxied, "vary").is_some(),
            server.handle.url().to_owned(),
        )
    };
    let (url, varies, own) = ask("agents: [{id: a, echo: }]").await;
    assert_eq!((url, varies), (own, false), "nobody is trusted");
    let (url, varies, _) = ask("trusted_proxies: [127.0.0.1]\nagents: [{id: a, echo: }]").await;
    assert_eq!((url.as_str(), varies), ("https://agents.test/a", true));
    let (url, _, own) = ask("trusted_proxies: [10.0.0.0/8]\nagents: [{id: a, echo: }]").await;
    assert_eq!(url, own, "we come from elsewhere");
    let (url, varies, _) = ask(
        "trusted_proxies: 127.0.0.0/8, ::1\npublic_url: https://fixed.test/\nagents: [{id: a, echo: }]",
    )
    .await;
    assert_eq!((url.as_str(), varies), ("https://fixed.test", false));
}

/// A port of its own for gRPC is in the card, and has nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_can_have_a_port_of_its_own() {
    let server = Configured::start("grpc_listen: 127.0.0.1:0\nagents: [{id: a, echo: }]").await;
    let addr = server.handle.grpc_addr().unwrap();
    let card = server.get(CARD, &[]).await.json();
    let interfaces = urls(&card);
    let grpc = addr.to_string();
    assert_eq!(interfaces[2], ("GRPC", grpc.as_str()));
    let request = a2ad_proto::ListTasksRequest::default().encode_to_vec();
    for to in [addr, server.handle.addr()] {
        let client = a2ad_testkit::grpc::Grpc::new(to);
        let answer = client.call("ListTasks", &[], &request).await.unwrap();
        assert_eq!(answer.status().code, 0);
    }
    for path in ["/", CARD, "/metrics", "/livez", "/tasks"] {
        let answer = a2ad_testkit::http::call(addr, Method::GET, path, &[], "").await;
        assert_eq!(answer.unwrap().status, 404, "{path}");
    }
    // A path before our proxy is nowhere in gRPC.
    let server = Configured::start("public_url: https://x.test/a\nagents: [{id: a, echo: }]").await;
    let card = server.get(CARD, &[]).await.json();
    assert_eq!(urls(&card).len(), 2);
}

/// A card file is data: what looks like a variable is not one, and JSON is JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_file_is_read_as_it_is() {
    for (file, text, name) in [
        (
            "card.json",
            r#"{"name": "Smile \ud83d\ude00"}"#,
            "Smile \u{1f600}",
        ),
        ("card.json", "{\t\"name\":\t\"Tab\"}", "Tab"),
        (
            "card.yaml",
            "name: ${HOME} and ${1+1} and $${x}",
            "${HOME} and ${1+1} and $${x}",
        ),
        ("card.yaml", "name: \u{e000}x\u{e001}", "\u{e000}x\u{e001}"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let yaml = format!("agents: [{{id: a, card: {file}, echo: }}]");
        let server = try_start(&yaml, folder).await.unwrap();
        let card = server.get(CARD, &[]).await.json();
        assert_eq!(card["name"], name, "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("card.yaml"), "x".repeat((1 << 20) + 1)).unwrap();
    let large = try_start("agents: [{id: a, card: card.yaml, echo: }]", folder).await;
    assert!(matches!(large, Err(StartError::CardFile { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_is_listed_where_it_can_be_reached() {
    let listed = async |yaml: &str| {
        let server = Configured::start(&format!("{yaml}\nagents: [{{id: a, echo: }}]")).await;
        let card = server.get(CARD, &[]).await.json();
        let url = card["supportedInterfaces"][2]["url"]
            .as_str()
            .map(str::to_owned);
        (url, server.handle.grpc_addr())
    };
    // On another address of this machine.
    let (url, addr) = listed("grpc_listen: 127.0.0.2:0").await;
    assert_eq!(url, Some(addr.unwrap().to_string()));
    let (url, addr) = listed("grpc_listen: 127.0.0.2:0\npublic_url: https://x.test/a").await;
    assert_eq!(url, Some(format!("x.test:{}", addr.unwrap().port())));
    let (url, _) = listed("grpc_public_address: grpc.test:443\npublic_url: https://x.test/a").await;
    assert_eq!(url.as_deref(), Some("grpc.test:443"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_clients_could_not_use_are_refused() {
    for url in [
        "http://[::1",
        "https://h/<x>",
        "https://m\u{fc}nchen.test",
        "http://h:99999",
        "https://h:abc",
    ] {
        let text = format!("public_url: '{url}'\nagents: [{{id: a, echo: }}]");
        let read = a2ad_server::config::Source::yaml("t", text).read(&|_| None);
        assert!(
            read.unwrap_err().to_string().contains("public address"),
            "{url}"
        );
    }
    let same = "listen: 127.0.0.1:47110\ngrpc_listen: 127.0.0.1:47110\nagents: [{id: a, echo: }]";
    let config = a2ad_server::config::Source::yaml("t", same)
        .read(&|_| None)
        .unwrap();
    let checked = a2ad_server::Server::new(config).check();
    assert!(matches!(checked, Err(StartError::SameAddress(_))));
    for (written, word) in [
        ("{a: b}", "expected addresses"),
        ("[x]", "`x` is neither"),
        ("5", "expected addresses"),
    ] {
        let text = format!("trusted_proxies: {written}\nagents: [{{id: a, echo: }}]");
        let error = a2ad_server::config::Source::yaml("t", text)
            .read(&|_| None)
            .unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}
