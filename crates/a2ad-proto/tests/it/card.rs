//! Agent cards.

use a2ad_proto::{AgentCard, OAuthFlows, SecurityScheme, from_json, to_json};

use super::{refused, rewrite, unchanged};

#[test]
fn a_hybrid_card_is_read_and_its_old_members_ignored() {
    let text = r#"{"name":"Resizer","description":"Resizes images","version":"2.1.0",
        "supportedInterfaces":[{"url":"https://h.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://h.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"}],
        "capabilities":{"streaming":true,"extendedAgentCard":true},
        "securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"bearer"},"type":"http","scheme":"bearer"}},
        "securityRequirements":[{"schemes":{"b":{}}}],"security":[{"b":[]}],
        "defaultInputModes":["image/png"],"defaultOutputModes":["image/png"],
        "skills":[{"id":"resize","name":"Resize","description":"Scale an image","tags":["image"]}],
        "protocolVersion":"0.3.0","url":"https://h.example/rpc","preferredTransport":"JSONRPC","supportsAuthenticatedExtendedCard":true}"#;
    let card: AgentCard = from_json(text.as_bytes()).unwrap();
    assert_eq!(card.supported_interfaces.len(), 2);
    assert!(
        matches!(&card.security_schemes["b"], SecurityScheme::HttpAuth(http) if http.scheme == "bearer")
    );
    let written = String::from_utf8(to_json(&card)).unwrap();
    for old in [
        "security\"",
        "preferredTransport",
        "\"type\"",
        "supportsAuth",
    ] {
        assert!(!written.contains(old), "{old}");
    }
    unchanged::<AgentCard>(&written);
}

#[test]
fn sign_03_presence_follows_the_schema_at_every_level() {
    // The vector of the checklist: what is not required and at its default goes, what is set or required stays.
    let text = r#"{"name":"Café","description":"","version":"1.0.0",
        "supportedInterfaces":[{"url":"https://a.example/rpc","protocolBinding":"JSONRPC","tenant":"","protocolVersion":"1.0"}],
        "capabilities":{"streaming":false,"extensions":[]},
        "securitySchemes":{"k":{"apiKeySecurityScheme":{"description":"","location":"header","name":"X-Key"}}},
        "securityRequirements":[{"schemes":{"k":{"list":[]}}}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"s","name":"S","description":"d","tags":["t"],"examples":[]}]}"#;
    let expected = r#"{"capabilities":{"streaming":false},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"","name":"Café","securityRequirements":[{"schemes":{"k":{}}}],"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}},"skills":[{"description":"d","id":"s","name":"S","tags":["t"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.example/rpc"}],"version":"1.0.0"}"#;
    let written: serde_json::Value = serde_json::from_str(&rewrite::<AgentCard>(text)).unwrap();
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    assert_eq!(written, expected);
}

#[test]
fn sign_04_free_objects_are_kept_verbatim() {
    let text = r#"{"uri":"u","params":{"z":"","a":null,"f":false,"e":[],"n":1.50}}"#;
    unchanged::<a2ad_proto::AgentExtension>(text);
}

#[test]
fn an_empty_card_has_all_its_required_members() {
    assert_eq!(
        rewrite::<AgentCard>("{}"),
        r#"{"name":"","description":"","supportedInterfaces":[],"version":"","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#
    );
}

#[test]
fn a_scheme_of_a_later_version_does_not_spoil_the_card() {
    let card: AgentCard = from_json(br#"{"securitySchemes":{"n":{"quantumScheme":{}}}}"#).unwrap();
    assert_eq!(card.security_schemes["n"], SecurityScheme::Unset);
    assert_eq!(OAuthFlows::default(), OAuthFlows::Unset);
}

#[test]
fn errors_inside_maps_name_the_key() {
    let text = r#"{"securitySchemes":{"a":{"mtlsSecurityScheme":{"description":1}}}}"#;
    let (field, _) = refused::<AgentCard>(text);
    assert_eq!(field, "securitySchemes[a].mtlsSecurityScheme.description");
    let (field, _) = refused::<AgentCard>(r#"{"securitySchemes":{"`: x":null}}"#);
    assert_eq!(field, "securitySchemes[???x]");
    let (field, _) = refused::<AgentCard>(r#"{"securitySchemes":{"a":{},"a":{}}}"#);
    assert_eq!(field, "securitySchemes[a]");
}

#[test]
fn every_flow_is_read_and_written() {
    for text in [
        r#"{"authorizationCode":{"authorizationUrl":"a","tokenUrl":"t","refreshUrl":"r","scopes":{"s":"d"},"pkceRequired":true}}"#,
        r#"{"clientCredentials":{"tokenUrl":"t","scopes":{}}}"#,
        r#"{"implicit":{"authorizationUrl":"a"}}"#,
        r#"{"password":{"tokenUrl":"t","scopes":{"s":""}}}"#,
        r#"{"deviceCode":{"deviceAuthorizationUrl":"d","tokenUrl":"t","scopes":{}}}"#,
    ] {
        unchanged::<OAuthFlows>(text);
    }
}
