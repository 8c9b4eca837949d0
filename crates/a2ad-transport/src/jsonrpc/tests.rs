use super::*;

#[test]
fn whoever_names_event_streams_reads_them() {
    let accepts = |lines: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_static(line));
        }
        accepts_events(&headers)
    };
    assert!(accepts(&["text/event-stream"]));
    assert!(accepts(&[
        "application/json",
        "text/plain, TEXT/Event-Stream ; q=0.5"
    ]));
    assert!(!accepts(&[]));
    assert!(!accepts(&["*/*"]));
    assert!(!accepts(&["text/event-streams"]));
}

#[test]
fn every_method_is_found_by_its_name_only() {
    for method in Method::ALL {
        assert_eq!(Method::named(method.name()), Some(method));
        assert_eq!(Method::named(&method.name().to_lowercase()), None);
    }
    assert_eq!(Method::named(""), None);
}
