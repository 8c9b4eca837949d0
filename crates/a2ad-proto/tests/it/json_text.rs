//! JSON values kept as text.

use a2ad_proto::{Json, Metadata};
use serde_json::json;

#[track_caller]
fn becomes(text: &str, expected: &str) {
    let json = Json::parse(text).unwrap();
    assert_eq!(json.as_str(), expected);
    assert_eq!(serde_json::to_string(&json).unwrap(), expected);
    assert_eq!(serde_json::from_str::<Json>(text).unwrap(), json);
}

#[test]
fn whitespace_between_tokens_goes() {
    becomes(
        " {\n\"a b\" :\t[ 1 , true ,null , { } , [ ] ] }\r\n",
        r#"{"a b":[1,true,null,{},[]]}"#,
    );
}

#[test]
fn strings_have_one_spelling() {
    becomes(
        r#""\u0041\/\u00e9\u000a\u0001\"\\\b\f\r\t""#,
        r#""A/é\n\u0001\"\\\b\f\r\t""#,
    );
    becomes(r#""\ud83d\ude00\u007f""#, "\"😀\u{7f}\"");
    becomes(r#"{"\u0061":1}"#, r#"{"a":1}"#);
}

#[test]
fn the_last_of_equal_names_counts() {
    becomes(r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#);
    becomes(r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#);
    becomes(
        r#"{"o":{"x":1,"x":{"y":1,"y":2}},"o2":0}"#,
        r#"{"o":{"x":{"y":2}},"o2":0}"#,
    );
    let many: Vec<String> = (0..40).map(|i| format!("\"k{}\":{i}", i % 20)).collect();
    let kept: Vec<String> = (20..40).map(|i| format!("\"k{}\":{i}", i % 20)).collect();
    becomes(
        &format!("{{{}}}", many.join(",")),
        &format!("{{{}}}", kept.join(",")),
    );
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "tru",
        "nul",
        "truex",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"\n\"",
        "1 2",
        "'a'",
        "[1]]",
        "\u{feff}1",
    ] {
        assert!(Json::parse(text).is_err(), "accepted {text:?}");
        assert!(
            serde_json::from_str::<Json>(text).is_err(),
            "accepted {text:?}"
        );
    }
    let long = format!("1{}", "0".repeat(400));
    assert!(Json::parse(&long).is_err());
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Json::parse(&nested(Json::DEPTH_MAX)).is_ok());
    let error = Json::parse(&nested(Json::DEPTH_MAX + 1)).unwrap_err();
    assert_eq!((error.reason, error.offset), ("nested too deeply", 100));
    assert!(Json::parse(&"[".repeat(1_000_000)).is_err());
    let deep = format!(r#"{{"data":{}}}"#, nested(100_000));
    assert_eq!(super::refused::<a2ad_proto::Part>(&deep).0, "data");
}

#[test]
fn trees_convert_both_ways() {
    let tree = json!({"a": [1, -2, 0.5, null, true, "é\"\n"], "b": {}});
    let json = Json::from_value(&tree);
    assert_eq!(json.to_value(), tree);
    assert_eq!(Json::parse(json.as_str()).unwrap(), json);
    let read: Json = serde_json::from_value(tree).unwrap();
    assert_eq!(read, json);
}

#[test]
fn metadata_members_are_found() {
    let text = r#"{"a":1,"b\"c":{"x":[1,"},{"]},"d":"\\","e":[{"a":2}],"f":null}"#;
    let metadata = Metadata::parse(text).unwrap();
    let get = |key: &str| metadata.get(key).map(|json| json.as_str().to_owned());
    assert_eq!(get("a").as_deref(), Some("1"));
    assert_eq!(get("b\"c").as_deref(), Some(r#"{"x":[1,"},{"]}"#));
    assert_eq!(get("d").as_deref(), Some(r#""\\""#));
    assert_eq!(get("e").as_deref(), Some(r#"[{"a":2}]"#));
    assert_eq!(get("f").as_deref(), Some("null"));
    assert_eq!(get("x"), None);
    assert_eq!(metadata.to_map().len(), 5);
    assert_eq!(Metadata::from_map(&metadata.to_map()), metadata);
}

#[test]
fn metadata_merges_shallowly() {
    let check = |old: &str, new: &str, expected: &str| {
        let merged = Metadata::parse(old)
            .unwrap()
            .merged(&Metadata::parse(new).unwrap());
        assert_eq!(merged.as_str(), expected);
    };
    check("{}", "{}", "{}");
    check(r#"{"a":1}"#, "{}", r#"{"a":1}"#);
    check("{}", r#"{"a":1}"#, r#"{"a":1}"#);
    check(
        r#"{"a":{"x":1},"b":1.0}"#,
        r#"{"a":{"y":2}}"#,
        r#"{"b":1.0,"a":{"y":2}}"#,
    );
    check(
        r#"{"n":9007199254740993}"#,
        r#"{"m":1e2}"#,
        r#"{"n":9007199254740993,"m":1e2}"#,
    );
    assert!(Metadata::default().is_empty());
    assert!(Metadata::parse("[]").is_err());
}

#[test]
fn equal_content_is_one_canonical_text() {
    let canonical = |text: &str| a2ad_proto::canonical_json(&Json::parse(text).unwrap());
    for (one, other) in [
        ("1", "1.0"),
        ("1e2", "100"),
        ("12345678901234567890", "12345678901234567000"),
        ("9007199254740993", "9007199254740992"),
        // The reader of serde_json is off by the last bit here.
        ("0.9396908728118811419", "0.9396908728118811"),
        ("0.14673421054488193520", "0.14673421054488195"),
        ("0.30000000000000004", "0.300000000000000044"),
        (
            r#"{"b":[{"d":1,"c":2.0}],"a":{}}"#,
            r#"{"a":{},"b":[{"c":2,"d":1.0}]}"#,
        ),
        (r#"{"\u0061\"":"\u00e9"}"#, r#"{"a\"":"é"}"#),
    ] {
        assert_eq!(canonical(one), canonical(other), "{one} and {other}");
    }
    for (one, other) in [
        ("0", "-0"),
        ("1", "\"1\""),
        ("0.1", "0.10000000000000002"),
        ("[1,2]", "[2,1]"),
        ("[[1],2]", "[[1,2]]"),
        ("[]", "{}"),
        ("null", "\"null\""),
        (r#"{"a":"b,c"}"#, r#"{"a":"b","c":0}"#),
        (r#"["a\"]","b"]"#, r#"["a]","b"]"#),
    ] {
        assert_ne!(canonical(one), canonical(other), "{one} and {other}");
    }
}
