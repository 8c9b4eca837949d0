//! Requests of one version where the other is spoken.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{SendMessageRequest, from_json};

use super::{BOTH, wrong};

/// What only 1.0 has is refused by name, with what 0.3 has instead.
#[test]
fn a_1_0_request_is_recognised() {
    let message = r#""message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}"#;
    for (json, path, instead) in [
        (
            format!(r#"{{{message},"configuration":{{"returnImmediately":true}}}}"#),
            "configuration.returnImmediately",
            "`blocking`",
        ),
        (
            format!(
                r#"{{{message},"configuration":{{"taskPushNotificationConfig":{{"url":"u"}}}}}}"#
            ),
            "configuration.taskPushNotificationConfig",
            "`pushNotificationConfig`",
        ),
        (
            format!(r#"{{{message},"tenant":"a"}}"#),
            "tenant",
            "the address",
        ),
        (
            r#"{"message":{"parts":[{"raw":"aGk=","mediaType":"text/plain"}]}}"#.to_owned(),
            "message.parts[0].raw",
            "`bytes`",
        ),
        (
            r#"{"message":{"parts":[{"mediaType":"text/plain","url":"u"}]}}"#.to_owned(),
            "message.parts[0].url",
            "`uri`",
        ),
        (
            r#"{"message":{"parts":[{"text":"x","media_type":"text/html"}]}}"#.to_owned(),
            "message.parts[0].mediaType",
            "`text`",
        ),
    ] {
        for dialect in BOTH {
            let (field, description) = wrong(v03::read_send(json.as_bytes(), dialect));
            assert_eq!(field, path);
            assert!(
                description.starts_with("is of protocol 1.0"),
                "{description}"
            );
            assert!(description.contains(instead), "{description}");
        }
    }
    // What both can mean is read, and a tagged part may have members that nobody knows.
    let readable = format!(r#"{{{message},"configuration":{{}},"tenant":""}}"#);
    v03::read_send(readable.as_bytes(), Dialect::Kinds).unwrap();
    let tagged = r#"{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"x","url":"u"}]}}"#;
    v03::read_send(tagged.as_bytes(), Dialect::Kinds).unwrap();

    let ids = br#"{"taskId":"t","id":"c"}"#;
    assert_eq!(wrong(v03::read_push_get(ids)).0, "taskId");
    assert_eq!(wrong(v03::read_push_delete(ids)).0, "taskId");
    assert_eq!(wrong(v03::read_push_list(ids)).0, "taskId");
    let flat = v03::read_push_create(br#"{"taskId":"t","url":"u"}"#, Dialect::Kinds, None);
    assert_eq!(wrong(flat).0, "url");
    let one = br#"{"pushNotificationConfig":{"url":"u","authentication":{"scheme":"Bearer"}}}"#;
    let one = v03::read_push_create(one, Dialect::Kinds, Some("t"));
    assert_eq!(wrong(one).0, "pushNotificationConfig.authentication.scheme");
}

/// A 0.3 request that 1.0 cannot read shows what it is.
#[test]
fn a_0_3_request_is_recognised() {
    for (json, member) in [
        (r#"{"message":{"role":"user"}}"#, "`message.role`"),
        (r#"{"message":{"kind":"message"}}"#, "`message.kind`"),
        (r#"{"message":{"parts":[{"kind":"text"}]}}"#, "`kind`"),
        (r#"{"message":{"parts":[{"type":"text"}]}}"#, "`kind`"),
        (r#"{"message":{"parts":[{"file":{}}]}}"#, "`file`"),
        (
            r#"{"configuration":{"blocking":true}}"#,
            "`configuration.blocking`",
        ),
        (
            r#"{"configuration":{"pushNotificationConfig":{}}}"#,
            "`configuration.pushNotificationConfig`",
        ),
        (
            r#"{"pushNotificationConfig":{}}"#,
            "`pushNotificationConfig`",
        ),
        (
            r#"{"pushNotificationConfigId":"c"}"#,
            "`pushNotificationConfigId`",
        ),
    ] {
        let hint = v03::looks_like_v03(json.as_bytes()).unwrap();
        assert!(hint.contains(member), "{json}: {hint}");
        assert!(hint.contains("0.3"), "{hint}");
    }
    let request = br#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}"#;
    assert!(from_json::<SendMessageRequest>(request).is_err());
    assert!(v03::looks_like_v03(request).is_some());
    for json in [
        r#"{"message":{"messageId":5,"role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
        "{}",
        "[]",
        "nonsense",
    ] {
        assert_eq!(v03::looks_like_v03(json.as_bytes()), None, "{json}");
    }
}
