//! The attributes.

use super::*;

#[test]
fn what_must_be_there() {
    for name in ["specversion", "id", "source", "type", "subject", "entityversion"] {
        for absent in ["", "null"] {
            check(name, absent, name);
        }
    }
    check("specversion", r#""1.0""#, "ok");
    for other in [r#""0.3""#, r#""1""#, r#""1.0 ""#, r#""""#, "1.0"] {
        check("specversion", other, "specversion");
    }
    for name in ["id", "source", "type"] {
        for wrong in [r#""""#, "1", "true", "{}", "[]"] {
            check(name, wrong, name);
        }
    }
}

#[test]
fn names_have_limits() {
    for name in ["id", "type", "idempotencykey"] {
        check(name, &text(MAX_NAME), "ok");
        check(name, &text(MAX_NAME + 1), name);
        // Bytes count, not characters.
        check(name, &format!("\"{}\"", "é".repeat(MAX_NAME / 2)), "ok");
        check(name, &format!("\"{}x\"", "é".repeat(MAX_NAME / 2)), name);
    }
    check("source", &text(1024), "ok");
    check("source", &text(1025), "source");
    check("subject", &text(1), "ok");
    check("subject", &text(MAX_KEY), "ok");
    check("subject", &text(MAX_KEY + 1), "subject");
    check("subject", r#""""#, "subject");
}

#[test]
fn control_characters() {
    for control in [r"\u0000", r"\u001f", r"\u007f", r"\u0080", r"\u009f", "\u{7f}", "\u{85}", r"\n"] {
        for name in ["id", "source", "type", "idempotencykey"] {
            check(name, &format!("\"a{control}b\""), name);
        }
        // A key is bytes, and what is only carried is carried.
        check("subject", &format!("\"a{control}b\""), "ok");
        check("correlationid", &format!("\"a{control}b\""), "ok");
    }
    for plain in [r"\u0020", r"\u00a0", r"\ud83d\ude00", "é"] {
        check("id", &format!("\"{plain}\""), "ok");
    }
    check("id", "\"a\tb\"", "json");
    check("id", r#""\ud83d""#, "id");
}

#[test]
fn versions() {
    for good in ["1", "18446744073709551615", r#""1""#, r#""18446744073709551615""#] {
        check("entityversion", good, "ok");
    }
    let bad = [
        "0",
        r#""0""#,
        "-1",
        "1.0",
        "1e0",
        "1.5",
        r#""01""#,
        r#""+1""#,
        r#"" 1""#,
        r#""1 ""#,
        r#""""#,
        r#""one""#,
        "true",
        "18446744073709551616",
        r#""18446744073709551616""#,
        r#""1٣""#,
        "{}",
        "[1]",
        r#""0x1""#,
        r#""1_0""#,
    ];
    for bad in bad {
        check("entityversion", bad, "entityversion");
        for ordering in ["snapshot", "causal", "arrival"] {
            check_all(&[("machine", &format!("{ordering:?}")), ("entityversion", bad)], "entityversion");
        }
    }
    check("entityversion", "01", "json");
    let exact = read_line(&line(&[("entityversion", "9007199254740993")])).unwrap();
    assert_eq!(exact.version, Some(9_007_199_254_740_993), "never through a float");
}

#[test]
fn versions_under_each_ordering() {
    let read = |ordering: &str, changes: &[(&str, &str)]| {
        let machine = format!("{ordering:?}");
        let changes = [&[("machine", machine.as_str())], changes].concat();
        read_line(&line(&changes)).map(|e| (e.version, e.previous)).map_err(|m| m.reason.code)
    };
    for ordering in ["versioned", "snapshot"] {
        assert_eq!(read(ordering, &[]), Ok((Some(1), None)));
        assert_eq!(read(ordering, &[("entityversion", "")]), Err("entityversion".into()));
        assert_eq!(read(ordering, &[("previousversion", "0")]), Ok((Some(1), Some(0))));
        assert_eq!(read(ordering, &[("entityversion", "5"), ("previousversion", "\"4\"")]), Ok((Some(5), Some(4))));
        assert_eq!(read(ordering, &[("previousversion", "1")]), Err("previousversion".into()));
        assert_eq!(read(ordering, &[("previousversion", "2")]), Err("previousversion".into()));
        assert_eq!(read(ordering, &[("previousversion", "-1")]), Err("previousversion".into()));
    }
    for ordering in ["causal", "arrival"] {
        assert_eq!(read(ordering, &[]), Ok((None, None)));
        assert_eq!(read(ordering, &[("entityversion", "")]), Ok((None, None)));
        assert_eq!(read(ordering, &[("previousversion", "7")]), Ok((None, None)), "what is not used is not compared");
        assert_eq!(read(ordering, &[("previousversion", "x")]), Err("json".into()));
        assert_eq!(read(ordering, &[("previousversion", "\"x\"")]), Err("previousversion".into()));
    }
    check("logicaltime", "0", "ok");
    check("logicaltime", "18446744073709551615", "ok");
    check("logicaltime", "18446744073709551616", "logicaltime");
}

#[test]
fn the_content_of_an_unversioned_event_has_no_version() {
    let causal = |version| read_line(&line(&[("machine", "\"causal\""), ("entityversion", version)])).unwrap();
    assert_eq!(causal("1").digest, causal("2").digest);
    let versioned = |version| read_line(&line(&[("entityversion", version)])).unwrap();
    assert_ne!(versioned("1").digest, versioned("2").digest);
}

#[test]
fn machines() {
    check("machine", r#""causal""#, "ok");
    check("machine", "null", "ok");
    for bad in [r#""""#, r#""Orders""#, r#""9""#, r#""unheard-of""#, r#""a b""#, r#""caus\u0000al""#, "1"] {
        check("machine", bad, "machine");
    }
    let mut unnamed = received(b"");
    let text = line(&[]);
    (unnamed.bytes, unnamed.machine) = (text.as_bytes(), None);
    assert_eq!(read(&unnamed).unwrap_err().reason.code, "machine");
    let text = line(&[("machine", r#""c\u0061usal""#)]);
    unnamed.bytes = text.as_bytes();
    assert_eq!(&*read(&unnamed).unwrap().entity.machine, "causal");
    let event = read_line(&line(&[("machine", r#""causal""#)])).unwrap();
    assert_eq!((&*event.entity.machine, &*event.key.machine), ("causal", "causal"), "the envelope's wins");
}

#[test]
fn the_records_key_and_time_stand_in() {
    let by_record = |changes: &[(&str, &str)], key: Option<&[u8]>, time| {
        let line = line(changes);
        let received = Received { key, record_time: time, ..received(line.as_bytes()) };
        read(&received).map(|e| (e.entity.key.to_vec(), e.time)).map_err(|m| m.reason.code)
    };
    let none = [("subject", "")];
    assert_eq!(by_record(&none, Some(b"\xff\x00"), Some(5)), Ok((b"\xff\x00".to_vec(), 5)));
    assert_eq!(by_record(&none, Some(b""), None), Err("subject".into()));
    assert_eq!(by_record(&none, Some(&[b'k'; MAX_KEY]), None), Ok((vec![b'k'; MAX_KEY], RECEIVED_AT)));
    assert_eq!(by_record(&none, Some(&[b'k'; MAX_KEY + 1]), None), Err("subject".into()));
    assert_eq!(by_record(&none, None, None), Err("subject".into()));
    assert_eq!(by_record(&[], Some(b"other"), None), Ok((b"o1".to_vec(), RECEIVED_AT)), "subject wins");
    assert_eq!(
        by_record(&[("subject", "1")], Some(b"k"), None),
        Err("subject".into()),
        "a bad subject is not passed over"
    );
    let timed = [("time", r#""1970-01-01T00:00:01Z""#)];
    assert_eq!(by_record(&timed, None, Some(5)), Ok((b"o1".to_vec(), 1_000)), "the envelope's time wins");
}

#[test]
fn times_are_rfc_3339() {
    check_time("1970-01-01T00:00:00Z", Some(0));
    check_time("1970-01-01t00:00:00z", Some(0));
    check_time("1970-01-01T01:00:00+01:00", Some(0));
    check_time("1969-12-31T18:30:00-05:30", Some(0));
    check_time("1970-01-01T00:00:00-00:00", Some(0));
    check_time("1970-01-01T23:59:00+23:59", Some(0));
    check_time("1970-01-01T00:00:00.001Z", Some(1));
    check_time("1970-01-01T00:00:00.0019999999999999Z", Some(1));
    check_time("1969-12-31T23:59:59.9995Z", Some(-1));
    check_time("1969-12-31T23:59:59Z", Some(-1_000));
    check_time("0000-01-01T00:00:00Z", Some(-62_167_219_200_000));
    check_time("9999-12-31T23:59:59.999Z", Some(253_402_300_799_999));
    check_time("9999-12-31T23:59:59-23:59", Some(253_402_387_139_000));
    check_time("2024-02-29T00:00:00Z", Some(1_709_164_800_000));
    check_time("2016-12-31T23:59:60Z", Some(1_483_228_799_999));
    let bad = [
        "",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01T00:00Z",
        "1970-01-01T24:00:00Z",
        "1970-13-01T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "1970-01-01T00:00:61Z",
        "1970-01-01T12:00:60Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+01:60",
        "+1970-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z ",
        " 1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00,5Z",
        "0",
        "now",
        "1970-01-01T00:00:00UTC",
    ];
    for bad in bad {
        check_time(bad, None);
    }
    check("time", "0", "time");
}

#[test]
fn dependencies() {
    check("dependson", r#""order.paid, orders/o2@3""#, "ok");
    check("dependson", "null", "ok");
    for bad in [r#""""#, r#"" ""#, r#""a,,b""#, r#""a,""#, r#""orders/o2@0""#, r#""a\u0000b""#, "[]", "1"] {
        check("dependson", bad, "dependson");
    }
    check("dependson", &text(MAX_NAME), "ok");
    check("dependson", &text(MAX_NAME + 1), "dependson");
    check("dependson", &format!("\"{}\"", vec!["t"; 32].join(",")), "ok");
    check("dependson", &format!("\"{}\"", vec!["t"; 33].join(",")), "dependson");
    let long = |bytes: usize| format!("\"{}{}\"", " ".repeat(bytes - 1), "t");
    check("dependson", &long(4096), "ok");
    check("dependson", &long(4097), "dependson");
}

#[test]
fn extensions() {
    let event = read_line(&line(&[
        ("causationid", r#""c""#),
        ("myext", r#""a\u0062""#),
        ("count", "1.50"),
        ("flag", "true"),
        ("nothing", "null"),
    ]));
    let expect = [("causationid", "c"), ("myext", "ab"), ("count", "1.50"), ("flag", "true")];
    assert_eq!(event.unwrap().attributes, expect.map(|(n, v)| (n.to_owned(), v.to_owned())));
    check("x", r#""""#, "ok");
    check("x", "{}", "extension");
    check("x", "[]", "extension");
    for name in ["correlationid", "causationid", "traceparent", "dataschema"] {
        check(name, r#""""#, name);
        check(name, "1", name);
    }
    let many = |n: usize| (0..n).map(|i| format!("x{i}")).collect::<Vec<_>>();
    let with = |n: usize, expect| {
        let names = many(n);
        check_all(&names.iter().map(|n| (n.as_str(), "1")).collect::<Vec<_>>(), expect);
    };
    with(64, "ok");
    with(65, "extensions");
    check("x", &text(8 * 1024 - 1), "ok");
    check("x", &text(8 * 1024), "extensions");
}
