//! JSON-04.

use a2ad_proto::Timestamp;

#[track_caller]
fn reads(text: &str, expected: &str) {
    assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), expected);
}

#[test]
fn json_04_fractions_and_offsets_are_normalised() {
    reads("2026-01-31T09:00:00Z", "2026-01-31T09:00:00.000Z");
    reads("2026-01-31T09:00:00.1Z", "2026-01-31T09:00:00.100Z");
    reads("2026-01-31T09:00:00.123456Z", "2026-01-31T09:00:00.123456Z");
    reads(
        "2026-01-31T09:00:00.123456789Z",
        "2026-01-31T09:00:00.123456789Z",
    );
    reads("2026-01-31T09:00:00.120000000Z", "2026-01-31T09:00:00.120Z");
    reads("2026-01-31t09:00:00z", "2026-01-31T09:00:00.000Z");
    reads("2026-01-31T09:00:00+00:00", "2026-01-31T09:00:00.000Z");
    reads("2026-01-31T23:30:00-05:45", "2026-02-01T05:15:00.000Z");
    reads("2024-02-29T00:00:00+14:00", "2024-02-28T10:00:00.000Z");
    reads("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z");
    reads(
        "9999-12-31T23:59:59.999999999Z",
        "9999-12-31T23:59:59.999999999Z",
    );
    reads("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z");
    reads("2000-03-01T00:00:00Z", "2000-03-01T00:00:00.000Z");
    reads(
        "1900-02-28T24:00:00Z".replace("24", "23").as_str(),
        "1900-02-28T23:00:00.000Z",
    );
}

#[test]
fn json_04_other_texts_are_refused() {
    for text in [
        "",
        "2026-01-31",
        "2026-01-31T09:00:00",
        "2026-01-31 09:00:00Z",
        "2026-01-31T09:00Z",
        "2026-1-31T09:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T09:60:00Z",
        "2026-01-31T09:00:60Z",
        "2026-01-31T09:00:00.Z",
        "2026-01-31T09:00:00.1234567890Z",
        "2026-01-31T09:00:00+0100",
        "2026-01-31T09:00:00+24:00",
        "2026-01-31T09:00:00ZZ",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "+026-01-31T09:00:00Z",
        "2026-01-31T09:00:00Zé",
        "２０26-01-31T09:00:00Z",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "accepted {text}");
    }
}

#[test]
fn milliseconds_round_as_named() {
    let time: Timestamp = "1970-01-01T00:00:01.0005Z".parse().unwrap();
    assert_eq!((time.as_millis(), time.as_millis_ceil()), (1_000, 1_001));
    let time: Timestamp = "1969-12-31T23:59:59.9995Z".parse().unwrap();
    assert_eq!((time.as_millis(), time.as_millis_ceil()), (-1, 0));
    assert_eq!((time.seconds(), time.nanos()), (-1, 999_500_000));
    let time = Timestamp::from_millis(-1);
    assert_eq!(
        (time.seconds(), time.nanos(), time.as_millis_ceil()),
        (-1, 999_000_000, -1)
    );
}

#[test]
fn milliseconds_out_of_range_are_brought_into_it() {
    assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
    assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MIN.to_string(), "0001-01-01T00:00:00.000Z");
    assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999999Z");
    assert!(Timestamp::from_parts(0, 1_000_000_000).is_err());
    assert!(Timestamp::MIN < Timestamp::from_millis(0));
}

#[test]
fn every_day_of_a_long_span_comes_back() {
    let day = 86_400_000;
    let mut previous = String::new();
    for days in -800_000..2_900_000_i64 {
        if days % 7 != 0 && days.abs() > 100_000 {
            continue;
        }
        let time = Timestamp::from_millis(days * day);
        let text = time.to_string();
        assert_eq!(text.parse(), Ok(time), "{text}");
        if time > Timestamp::MIN && time < Timestamp::MAX {
            assert!(previous < text, "{previous} {text}");
        }
        previous = text;
    }
}
