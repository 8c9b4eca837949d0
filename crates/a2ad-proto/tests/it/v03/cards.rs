//! Cards of 0.3 and of both versions.

use a2ad_proto::v03;
use a2ad_proto::{AgentCard, OAuthFlows, SecurityScheme, from_json, to_json};
use serde_json::{Value, json};

use super::text;

/// The card of the checklist's examples, as 1.0 has it.
fn card() -> AgentCard {
    let card = json!({
        "name": "Resizer", "description": "Resizes images", "version": "2.1.0",
        "supportedInterfaces": [
            {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://h.example", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
        ],
        "capabilities": {"streaming": true, "extendedAgentCard": true},
        "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
        "securityRequirements": [{"schemes": {"b": {}}}],
        "defaultInputModes": ["image/png"], "defaultOutputModes": ["image/png"],
        "skills": [{"id": "resize", "name": "Resize", "description": "Scale an image", "tags": ["image"],
            "securityRequirements": [{"schemes": {"b": {"list": ["s"]}}}]}],
        "signatures": [{"protected": "p", "signature": "s"}],
    });
    from_json(card.to_string().as_bytes()).unwrap()
}

fn tree(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

#[test]
fn dual_05_a_hybrid_card_is_the_1_0_card_with_more_members() {
    let written = v03::write_hybrid_card(&card());
    // Readers of 1.0 see the very same card.
    assert_eq!(from_json::<AgentCard>(&written).unwrap(), card());
    let mut expected = tree(&to_json(&card()));
    expected["protocolVersion"] = json!("0.3.0");
    expected["url"] = json!("https://h.example/rpc");
    expected["preferredTransport"] = json!("JSONRPC");
    expected["additionalInterfaces"] =
        json!([{"url": "https://h.example", "transport": "HTTP+JSON"}]);
    expected["security"] = json!([{"b": []}]);
    expected["supportsAuthenticatedExtendedCard"] = json!(true);
    expected["skills"][0]["security"] = json!([{"b": ["s"]}]);
    expected["securitySchemes"]["b"]["type"] = json!("http");
    expected["securitySchemes"]["b"]["scheme"] = json!("bearer");
    assert_eq!(tree(&written), expected);
    // The members of 1.0 come as they would without the others.
    let plain = text(to_json(&card()));
    let start = plain.split(r#","securitySchemes""#).next().unwrap();
    assert!(text(written).starts_with(start));
}

#[test]
fn dual_05_a_card_without_a_0_3_interface_has_no_0_3_members() {
    let mut card = card();
    card.supported_interfaces.truncate(1);
    assert_eq!(v03::write_hybrid_card(&card), to_json(&card));
    assert_eq!(v03::write_card(&card), None);
    card.capabilities.extended_agent_card = Some(false);
    card.supported_interfaces[0].protocol_version = "0.3.0".to_owned();
    let written = tree(&v03::write_hybrid_card(&card));
    assert_eq!(written.get("supportsAuthenticatedExtendedCard"), None);
    assert_eq!(written.get("additionalInterfaces"), None);
}

#[test]
fn dual_06_each_scheme_has_its_1_0_wrapper() {
    let card = json!({"securitySchemes": schemes_1_0(), "supportedInterfaces": [{"protocolVersion": "0.3"}]});
    let card: AgentCard = from_json(card.to_string().as_bytes()).unwrap();
    let written = tree(&v03::write_hybrid_card(&card));
    for (name, scheme) in schemes_1_0().as_object().unwrap() {
        let (wrapper, inside) = scheme.as_object().unwrap().iter().next().unwrap();
        assert_eq!(&written["securitySchemes"][name][wrapper], inside);
        for (member, value) in schemes_0_3()[name].as_object().unwrap() {
            assert_eq!(&written["securitySchemes"][name][member], value);
        }
    }
}

fn schemes_1_0() -> Value {
    json!({
        "key": {"apiKeySecurityScheme": {"description": "d", "location": "header", "name": "X-Key"}},
        "http": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
        "oauth": {"oauth2SecurityScheme": {"flows": {"authorizationCode": {"authorizationUrl": "a",
            "tokenUrl": "t", "refreshUrl": "r", "scopes": {"s": "S"}}}, "oauth2MetadataUrl": "m"}},
        "service": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "t", "scopes": {}}}}},
        "implicit": {"oauth2SecurityScheme": {"flows": {"implicit": {"authorizationUrl": "a", "scopes": {"s": "S"}}}}},
        "password": {"oauth2SecurityScheme": {"flows": {"password": {"tokenUrl": "t", "scopes": {"s": "S"}}}}},
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "o"}},
        "tls": {"mtlsSecurityScheme": {"description": "d"}},
    })
}

fn schemes_0_3() -> Value {
    json!({
        "key": {"type": "apiKey", "description": "d", "in": "header", "name": "X-Key"},
        "http": {"type": "http", "scheme": "Bearer", "bearerFormat": "JWT"},
        "oauth": {"type": "oauth2", "flows": {"authorizationCode": {"authorizationUrl": "a",
            "tokenUrl": "t", "refreshUrl": "r", "scopes": {"s": "S"}}}, "oauth2MetadataUrl": "m"},
        "service": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "t", "scopes": {}}}},
        "implicit": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "a", "scopes": {"s": "S"}}}},
        "password": {"type": "oauth2", "flows": {"password": {"tokenUrl": "t", "scopes": {"s": "S"}}}},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "o"},
        "tls": {"type": "mutualTLS", "description": "d"},
    })
}

#[test]
fn v03_21_a_card_has_the_members_of_0_3_and_no_others() {
    let mut card = card();
    card.security_schemes = from_json::<AgentCard>(
        json!({"securitySchemes": schemes_1_0()})
            .to_string()
            .as_bytes(),
    )
    .unwrap()
    .security_schemes;
    let expected = json!({
        "name": "Resizer", "description": "Resizes images", "version": "2.1.0",
        "protocolVersion": "0.3.0", "url": "https://h.example/rpc", "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": "https://h.example", "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true},
        "securitySchemes": schemes_0_3(),
        "security": [{"b": []}],
        "defaultInputModes": ["image/png"], "defaultOutputModes": ["image/png"],
        "skills": [{"id": "resize", "name": "Resize", "description": "Scale an image", "tags": ["image"],
            "security": [{"b": ["s"]}]}],
        "supportsAuthenticatedExtendedCard": true,
    });
    let written = v03::write_card(&card).unwrap();
    assert_eq!(tree(&written), expected);
    // And back, but for the interface that it does not show and the signature.
    card.supported_interfaces.remove(0);
    card.signatures.clear();
    assert_eq!(v03::read_card(&written).unwrap(), card);
}

#[test]
fn v03_22_the_preferred_interface_comes_first_and_once() {
    let interfaces = |card: Value| -> Vec<(String, String, String)> {
        let card = v03::read_card(card.to_string().as_bytes()).unwrap();
        let each = card.supported_interfaces.into_iter();
        each.map(|it| (it.url, it.protocol_binding, it.protocol_version))
            .collect()
    };
    let place = |url: &str, binding: &str, version: &str| {
        (url.to_owned(), binding.to_owned(), version.to_owned())
    };
    let card = json!({"protocolVersion": "0.3.0", "url": "g", "preferredTransport": "GRPC", "additionalInterfaces": [
        {"url": "r", "transport": "JSONRPC"}, {"url": "g", "transport": "GRPC"}]});
    assert_eq!(
        interfaces(card),
        [place("g", "GRPC", "0.3"), place("r", "JSONRPC", "0.3")]
    );
    assert_eq!(
        interfaces(json!({"url": "u"})),
        [place("u", "JSONRPC", "0.3")]
    );
    let older = json!({"url": "u", "protocolVersion": "0.2.6"});
    assert_eq!(interfaces(older), [place("u", "JSONRPC", "0.2")]);
    assert_eq!(interfaces(json!({"name": "x"})), []);
}

/// V03-21: of several flows the one that does most; the schema's form of schemes is read as well.
#[test]
fn schemes_of_0_3_cards_are_read_with_good_will() {
    let flow = json!({"authorizationUrl": "a", "tokenUrl": "t", "scopes": {}});
    let card = json!({"securitySchemes": {
        "many": {"type": "oauth2", "flows": {"password": flow, "implicit": flow, "clientCredentials": flow, "authorizationCode": flow}},
        "few": {"type": "oauth2", "flows": {"password": flow, "clientCredentials": flow}},
        "proto": {"apiKeySecurityScheme": {"location": "header", "name": "k"}},
        "new": {"type": "quantum"},
    }, "security": [{"many": ["s"]}, {"schemes": {"few": {"list": ["s"]}}}], "signatures": [{"protected": "p", "signature": "s"}]});
    let card = v03::read_card(card.to_string().as_bytes()).unwrap();
    let flows = |name: &str| match &card.security_schemes[name] {
        SecurityScheme::OAuth2(it) => it.flows.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(flows("many"), OAuthFlows::AuthorizationCode(_)));
    assert!(matches!(flows("few"), OAuthFlows::ClientCredentials(_)));
    assert!(matches!(
        card.security_schemes["proto"],
        SecurityScheme::ApiKey(_)
    ));
    assert_eq!(card.security_schemes["new"], SecurityScheme::Unset);
    assert_eq!(card.security_requirements[0].schemes["many"].list, ["s"]);
    assert_eq!(card.security_requirements[1].schemes["few"].list, ["s"]);
    assert!(card.signatures.is_empty());
    let wrong = v03::read_card(br#"{"skills":[{"id":"a","security":[{"b":1}]}]}"#).unwrap_err();
    assert_eq!(wrong.0[0].field, "skills[0].security[0][b]");
}
