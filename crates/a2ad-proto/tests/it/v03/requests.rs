//! What clients of 0.3 ask for.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    AuthenticationInfo, Json, Message, PartContent, Role, SendMessageConfiguration,
    TaskPushNotificationConfig, TaskState,
};

use super::{BOTH, message, wrong};

/// A send with these parts in the form of JSON-RPC.
fn with_parts(parts: &str) -> Vec<u8> {
    format!(
        r#"{{"message":{{"kind":"message","messageId":"m1","role":"user","parts":[{parts}]}}}}"#
    )
    .into_bytes()
}

fn content(part: &str, dialect: Dialect) -> PartContent {
    let request = v03::read_send(&with_parts(part), dialect).unwrap();
    message(request).parts.remove(0).content
}

fn data(json: &str) -> PartContent {
    PartContent::Data(Json::parse(json).unwrap())
}

fn file(bytes: &'static [u8]) -> PartContent {
    PartContent::Raw(bytes.into())
}

#[test]
fn v03_05_parts_are_texts_files_and_data() {
    let request = v03::read_send(
        br#"{"message":{"kind":"message","messageId":"m1","role":"user","parts":[
            {"kind":"text","text":"hi","metadata":{"n":1.0}},
            {"kind":"file","file":{"name":"in.png","mimeType":"image/png","bytes":"iVBORw0KGgo="}},
            {"kind":"file","file":{"uri":"https://f.example/x"}},
            {"kind":"data","data":{"n":9007199254740993}}]},"configuration":{"blocking":true}}"#,
        Dialect::Kinds,
    );
    let parts = message(request.unwrap()).parts;
    assert_eq!(parts[0].as_text(), Some("hi"));
    assert_eq!(parts[0].metadata.as_ref().unwrap().as_str(), r#"{"n":1.0}"#);
    assert_eq!(parts[1].content, file(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(parts[1].filename, "in.png");
    assert_eq!(parts[1].media_type, "image/png");
    let url = PartContent::Url("https://f.example/x".to_owned());
    assert_eq!(parts[2].content, url);
    assert_eq!(parts[3].content, data(r#"{"n":9007199254740993}"#));
}

/// V03-05: what is wrong in a part is named as it was written.
#[test]
fn a_wrong_part_is_named() {
    let field = |part: &str| wrong(v03::read_send(&with_parts(part), Dialect::Kinds));
    for (part, path) in [
        (r#"{"kind":"text","text":5}"#, "message.parts[0].text"),
        (
            r#"{"kind":"file","file":{"bytes":"?"}}"#,
            "message.parts[0].file.bytes",
        ),
        (
            r#"{"kind":"file","file":{"bytes":"","uri":"u"}}"#,
            "message.parts[0].file.uri",
        ),
        (r#"{"kind":"file","file":{}}"#, "message.parts[0].file"),
        (r#"{"kind":"data","data":[1]}"#, "message.parts[0].data"),
        (r#"{"kind":"data"}"#, "message.parts[0].data"),
        (r#"{"kind":"image"}"#, "message.parts[0].kind"),
        (r#"{"kind":"file","text":"x"}"#, "message.parts[0].kind"),
        (r#"{"type":"file","text":"x"}"#, "message.parts[0].type"),
        (r#"{"text":"x","data":{}}"#, "message.parts[0]"),
        (r#"{"text":"x","text":"y"}"#, "message.parts[0].text"),
        ("{}", "message.parts[0]"),
        ("7", "message.parts[0]"),
    ] {
        assert_eq!(field(part).0, path, "{part}");
    }
    let proto = br#"{"request":{"content":[{"file":{"file_with_bytes":"?"}}]}}"#;
    let (path, _) = wrong(v03::read_send(proto, Dialect::Proto));
    assert_eq!(path, "request.content[0].file.file_with_bytes");
}

#[test]
fn v03_02_tags_may_be_missing_or_called_type() {
    for dialect in BOTH {
        for part in [
            r#"{"kind":"text","text":"hi"}"#,
            r#"{"type":"text","text":"hi"}"#,
            r#"{"text":"hi"}"#,
            r#"{"text":"hi","file":null,"data":null}"#,
        ] {
            let hi = PartContent::Text("hi".to_owned());
            assert_eq!(content(part, dialect), hi, "{part}");
        }
        for part in [
            r#"{"kind":"file","file":{"bytes":"aGk="}}"#,
            r#"{"type":"file","file":{"bytes":"aGk"}}"#,
            r#"{"file":{"bytes":"aGk="}}"#,
        ] {
            assert_eq!(content(part, dialect), file(b"hi"), "{part}");
        }
        for part in [
            r#"{"kind":"data","data":{"data":{}}}"#,
            r#"{"type":"data","data":{"data":{}}}"#,
        ] {
            assert_eq!(content(part, dialect), data(r#"{"data":{}}"#), "{part}");
        }
    }
}

#[test]
fn v03_14_the_schemas_json_is_read() {
    let body = br#"{"message":{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"},
        {"file":{"fileWithUri":"https://f.example/x","mimeType":"image/png","name":"x"}},
        {"data":{"data":{"n":1}}},{"data":{}}]},
        "configuration":{"blocking":true,"pushNotification":{"url":"https://h.example"}}}"#;
    let request = v03::read_send(body, Dialect::Proto).unwrap();
    let configuration = request.configuration.clone().unwrap();
    let push = configuration.task_push_notification_config.unwrap();
    assert_eq!(push.url, "https://h.example");
    assert!(!configuration.return_immediately);
    let message = message(request);
    assert_eq!(message.role, Role::User);
    assert_eq!(message.parts[1].media_type, "image/png");
    assert_eq!(message.parts[1].filename, "x");
    assert_eq!(message.parts[2].content, data(r#"{"n":1}"#));
    assert_eq!(message.parts[3].content, data("{}"));
}

#[test]
fn v03_15_spellings_of_both_dialects_mean_the_same() {
    let one = br#"{"message":{"messageId":"m1","contextId":"c","taskId":"t","role":"user",
        "parts":[{"kind":"text","text":"hi"}],"referenceTaskIds":["r"]},
        "configuration":{"acceptedOutputModes":["text/plain"],"historyLength":3,"blocking":false,
        "pushNotificationConfig":{"url":"u"}}}"#;
    let other = br#"{"request":{"message_id":"m1","context_id":"c","task_id":"t","role":"ROLE_USER",
        "content":[{"text":"hi"}],"reference_task_ids":["r"]},
        "configuration":{"accepted_output_modes":["text/plain"],"history_length":"3","blocking":false,
        "push_notification":{"url":"u"}}}"#;
    let read = |json: &[u8], dialect| v03::read_send(json, dialect).unwrap();
    for dialect in BOTH {
        assert_eq!(read(one, dialect), read(other, dialect));
    }
    let twice = br#"{"message":{"parts":[],"content":[]}}"#;
    let (path, _) = wrong(v03::read_send(twice, Dialect::Kinds));
    assert_eq!(path, "message.content");
    let number = br#"{"message":{"messageId":"m","role":1,"parts":[{"text":""}]}}"#;
    assert_eq!(message(read(number, Dialect::Kinds)).role, Role::User);
}

#[test]
fn v03_16_a_files_base64_may_be_in_base64() {
    let part = |bytes: &str| format!(r#"{{"file":{{"fileWithBytes":"{bytes}"}}}}"#);
    // `aGk=` is `hi`; `YUdrPQ==` is `aGk=`.
    assert_eq!(content(&part("YUdrPQ=="), Dialect::Proto), file(b"hi"));
    assert_eq!(
        content(&part("YUdrPQ=="), Dialect::ProtoPlain),
        file(b"aGk=")
    );
    assert_eq!(content(&part("aGk="), Dialect::Proto), file(b"hi"));
    assert_eq!(content(&part(""), Dialect::Proto), file(b""));
    // In the form of JSON-RPC it never is.
    let plain = r#"{"kind":"file","file":{"bytes":"YUdrPQ=="}}"#;
    assert_eq!(content(plain, Dialect::Proto), file(b"aGk="));
}

#[test]
fn v03_07_parameters_have_the_names_of_0_3() {
    let get = v03::read_get(
        br#"{"id":"t","historyLength":2,"metadata":{}}"#,
        Dialect::Kinds,
    );
    let get = get.unwrap();
    assert_eq!((&*get.id, get.history_length), ("t", Some(2)));
    let cancel = v03::read_cancel(br#"{"id":"t","metadata":{"a":1}}"#).unwrap();
    assert_eq!(cancel.metadata.unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(v03::read_subscribe(br#"{"id":"t"}"#).unwrap().id, "t");
    assert_eq!(
        v03::read_subscribe(br#"{"name":"tasks/t"}"#).unwrap().id,
        "t"
    );
    assert_eq!(wrong(v03::read_subscribe(br#"{"name":"t"}"#)).0, "name");
    for missing in [
        wrong(v03::read_get(b"{}", Dialect::Kinds)),
        wrong(v03::read_cancel(b"{}")),
        wrong(v03::read_subscribe(b"{}")),
        wrong(v03::read_push_get(b"{}")),
        wrong(v03::read_push_list(b"{}")),
    ] {
        assert_eq!(missing, ("id".to_owned(), "is required".to_owned()));
    }
    let set = br#"{"taskId":"t","pushNotificationConfig":{"id":"c","url":"u","token":"k",
        "authentication":{"schemes":["Bearer","Basic"],"credentials":"x"}}}"#;
    let expected = TaskPushNotificationConfig {
        tenant: String::new(),
        id: "c".to_owned(),
        task_id: "t".to_owned(),
        url: "u".to_owned(),
        token: "k".to_owned(),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: "x".to_owned(),
        }),
    };
    let read = v03::read_push_create(set, Dialect::Kinds, None).unwrap();
    assert_eq!(read, expected);
    let create = br#"{"parent":"tasks/t","configId":"c","config":{"name":"tasks/t/pushNotificationConfigs/c",
        "pushNotificationConfig":{"url":"u","token":"k","authentication":{"schemes":["Bearer"],"credentials":"x"}}}}"#;
    let read = v03::read_push_create(create, Dialect::Proto, Some("t")).unwrap();
    assert_eq!(read, expected);
    let other = v03::read_push_create(create, Dialect::Proto, Some("u"));
    assert_eq!(wrong(other).0, "taskId");
    let get = v03::read_push_get(br#"{"id":"t","pushNotificationConfigId":"c"}"#).unwrap();
    assert_eq!((&*get.task_id, &*get.id), ("t", "c"));
    let named = br#"{"name":"tasks/t/pushNotificationConfigs/c"}"#;
    assert_eq!(v03::read_push_get(named).unwrap(), get);
    let list = v03::read_push_list(br#"{"id":"t"}"#).unwrap();
    assert_eq!(list.task_id, "t");
    let delete = v03::read_push_delete(br#"{"id":"t","pushNotificationConfigId":"c"}"#);
    assert_eq!(delete.unwrap().id, "c");
}

#[test]
fn v03_11_a_webhooks_name_may_be_missing_where_it_is_asked_for() {
    assert_eq!(v03::read_push_get(br#"{"id":"t"}"#).unwrap().id, "");
    let (path, _) = wrong(v03::read_push_delete(br#"{"id":"t"}"#));
    assert_eq!(path, "pushNotificationConfigId");
}

#[test]
fn v03_09_silence_means_waiting_in_json_rpc_only() {
    let immediately = |configuration: &str, dialect| {
        let json = format!(
            r#"{{"message":{{"messageId":"m","role":"user","parts":[{{"text":"x"}}]}}{configuration}}}"#
        );
        let request = v03::read_send(json.as_bytes(), dialect).unwrap();
        request.configuration.unwrap_or_default().return_immediately
    };
    for dialect in BOTH {
        assert!(!immediately("", dialect));
        assert!(!immediately(
            r#","configuration":{"blocking":true}"#,
            dialect
        ));
        assert!(immediately(
            r#","configuration":{"blocking":false}"#,
            dialect
        ));
    }
    assert!(!immediately(r#","configuration":{}"#, Dialect::Kinds));
    assert!(immediately(r#","configuration":{}"#, Dialect::Proto));
}

#[test]
fn v03_10_a_history_of_zero_is_none_in_json_rpc_only() {
    let length = |dialect| {
        let get = v03::read_get(br#"{"id":"t","historyLength":0}"#, dialect).unwrap();
        get.history_length
    };
    assert_eq!(length(Dialect::Kinds), Some(0));
    assert_eq!(length(Dialect::Proto), None);
}

#[test]
fn v03_01_a_list_is_asked_for_as_in_1_0_with_words_of_0_3() {
    let list = v03::read_list(
        br#"{"contextId":"c","status":"input-required","pageSize":5,"pageToken":"p","includeArtifacts":true,
            "statusTimestampAfter":"2026-01-31T09:00:00"}"#,
        Dialect::Kinds,
    );
    let list = list.unwrap();
    assert_eq!(list.status, TaskState::InputRequired);
    assert_eq!(list.page_size, Some(5));
    let after = list.status_timestamp_after.unwrap();
    assert_eq!(after.to_string(), "2026-01-31T09:00:00.000Z");
    let (path, _) = wrong(v03::read_list(br#"{"pageSize":0}"#, Dialect::Kinds));
    assert_eq!(path, "pageSize");
}

/// V03-07: the checks of 1.0 hold, under the names of 0.3.
#[test]
fn requests_are_checked_under_their_own_names() {
    let fields = |json: &str, dialect| -> Vec<String> {
        let found = v03::read_send(json.as_bytes(), dialect).unwrap_err();
        found.0.into_iter().map(|it| it.field).collect()
    };
    assert_eq!(fields("{}", Dialect::Kinds), ["message"]);
    assert_eq!(
        fields(r#"{"message":{}}"#, Dialect::Kinds),
        ["message.messageId", "message.role", "message.parts"]
    );
    assert_eq!(
        fields(
            r#"{"request":{"messageId":"m","role":"user"}}"#,
            Dialect::Proto
        ),
        ["request.content"]
    );
    let push = |name: &str| {
        format!(
            r#"{{"message":{{"messageId":"m","role":"user","parts":[{{"text":""}}]}},
            "configuration":{{"historyLength":-1,"{name}":{{"authentication":{{"credentials":"x"}}}}}}}}"#
        )
    };
    for name in ["pushNotificationConfig", "pushNotification"] {
        let expected = [
            "configuration.historyLength".to_owned(),
            format!("configuration.{name}.url"),
            format!("configuration.{name}.authentication.schemes"),
        ];
        assert_eq!(fields(&push(name), Dialect::Kinds), expected);
    }
    let agent = br#"{"message":{"messageId":"m","role":"agent","parts":[{"text":""}]}}"#;
    let expected = ("message.role".to_owned(), "must be user".to_owned());
    assert_eq!(wrong(v03::read_send(agent, Dialect::Kinds)), expected);
    let create = v03::read_push_create(br#"{"pushNotificationConfig":{}}"#, Dialect::Kinds, None);
    let fields: Vec<_> = create
        .unwrap_err()
        .0
        .into_iter()
        .map(|it| it.field)
        .collect();
    assert_eq!(fields, ["taskId", "pushNotificationConfig.url"]);
}

/// MODEL-09, V03-07: the lists of a request have the longest lengths that they have in 1.0.
#[test]
fn lists_of_a_0_3_request_are_bounded() {
    for (before, element, after, max, path) in [
        (
            r#"{"message":{"parts":["#,
            r#"{"text":""}"#,
            "]}}",
            Message::PARTS_MAX,
            "message.parts",
        ),
        (
            r#"{"request":{"content":["#,
            r#"{"text":""}"#,
            "]}}",
            Message::PARTS_MAX,
            "request.content",
        ),
        (
            r#"{"message":{"extensions":["#,
            r#""""#,
            "]}}",
            Message::EXTENSIONS_MAX,
            "message.extensions",
        ),
        (
            r#"{"message":{"referenceTaskIds":["#,
            r#""""#,
            "]}}",
            Message::REFERENCES_MAX,
            "message.referenceTaskIds",
        ),
        (
            r#"{"configuration":{"acceptedOutputModes":["#,
            r#""""#,
            "]}}",
            SendMessageConfiguration::OUTPUT_MODES_MAX,
            "configuration.acceptedOutputModes",
        ),
    ] {
        let json = |elements: &[&str]| format!("{before}{}{after}", elements.join(","));
        let refused = |elements: &[&str]| {
            let found = v03::read_send(json(elements).as_bytes(), Dialect::Kinds).unwrap_err();
            found
                .0
                .into_iter()
                .map(|it| format!("{}: {}", it.field, it.description))
                .next()
                .unwrap()
        };
        let expected = format!("{path}: has more than {max} elements");
        let mut elements = vec![element; max];
        assert_ne!(refused(&elements), expected);
        // Nothing beyond is read: an element of the wrong type goes unnoticed.
        elements.extend([element, "[true]"]);
        assert_eq!(refused(&elements), expected);
    }
    let deep = "[".repeat(Json::DEPTH_MAX + 1) + &"]".repeat(Json::DEPTH_MAX + 1);
    let part = format!(r#"{{"kind":"data","data":{{"d":{deep}}}}}"#);
    let (path, _) = wrong(v03::read_send(&with_parts(&part), Dialect::Kinds));
    assert_eq!(path, "message.parts[0].data");
}
