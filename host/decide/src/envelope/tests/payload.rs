//! The payload, and the envelope as JSON.

use super::*;

#[test]
fn data_is_the_exact_slice() {
    check_data(&[], b"");
    check_data(&[("data", "null")], b"");
    for raw in [
        "{ \"b\" : 1.0, \"a\":1 ,\"a\":2}",
        "123456789012345678901234567890",
        "1.10e+02",
        "\"a\\u0000\\/\"",
        "[]",
        "false",
    ] {
        check_data(&[("data", raw)], raw.as_bytes());
        check_data(&[("data", raw), ("datacontenttype", r#""application/vnd.x+JSON; v=1""#)], raw.as_bytes());
    }
}

#[test]
fn data_that_is_not_json() {
    let text = ("datacontenttype", r#""text/plain""#);
    check_data(&[text, ("data", r#""a\n\u00e9""#)], "a\né".as_bytes());
    check_data(&[text, ("data", "{\"a\": 1}")], b"{\"a\": 1}");
    check_data(&[text, ("data", r#""""#)], b"");
    check_all(&[text, ("data", r#""\ud83d""#)], "data");
    check_data(&[("data_base64", r#""AAH/""#)], b"\x00\x01\xff");
    check_data(&[("data_base64", r#""AA==""#), text], b"\x00");
    check_data(&[("data_base64", r#""""#)], b"");
    check_data(&[("data_base64", "null"), ("data", "1")], b"1");
    for bad in [r#""AA""#, r#""AA=""#, r#""A-_A""#, r#""A A=""#, r#""AAH/\n""#, r#""A""#, "1", "{}"] {
        check("data_base64", bad, "data_base64");
    }
    check_all(&[("data", "1"), ("data_base64", r#""AA==""#)], "data");
    check("datacontenttype", r#""""#, "datacontenttype");
}

#[test]
fn data_has_a_limit() {
    check("data", &text(62), "ok");
    check("data", &text(63), "data-too-large");
    check_all(&[("data", &text(64)), ("datacontenttype", r#""text/plain""#)], "ok");
    check_all(&[("data", &text(65)), ("datacontenttype", r#""text/plain""#)], "data-too-large");
    let base64 = |bytes: usize| format!("\"{}{}\"", "AAAA".repeat(bytes / 3), ["", "AA==", "AAA="][bytes % 3]);
    check("data_base64", &base64(64), "ok");
    check("data_base64", &base64(65), "data-too-large");
}

#[test]
fn equal_values_have_an_equal_value_digest() {
    let digests = |changes: &[(&str, &str)]| read_line(&line(changes)).map(|e| (e.digest, e.value_digest)).unwrap();
    let (bytes, value) = digests(&[("data", r#"{"a":1.0,"b":"\u0061"}"#)]);
    let (other_bytes, other_value) = digests(&[("data", r#"{ "b":"a", "a":1 }"#)]);
    assert!(bytes != other_bytes && value == other_value);
    let plain = ("datacontenttype", r#""text/plain""#);
    assert_ne!(
        digests(&[plain, ("data", "1.0")]).1,
        digests(&[plain, ("data", "1")]).1,
        "not JSON by its content type"
    );
    assert_eq!(digests(&[("data_base64", r#""MQ==""#)]), digests(&[("data", "1")]), "bytes are bytes");
}

#[test]
fn members_are_not_repeated() {
    let twice = |a: &str, b: &str| {
        let good = line(&[]);
        check_line(&good.replacen('{', &format!("{{{a},{b},"), 1), "repeated-member");
    };
    twice(r#""x":1"#, r#""x":1"#);
    twice(r#""x":1"#, r#""\u0078":1"#);
    twice(r#""x":null"#, r#""x":null"#);
    twice(r#""a\u002fb":1"#, r#""a\/b":2"#);
    check_line(&line(&[]).replacen('{', r#"{"id":"e1","#, 1), "repeated-member");
    check_line(&line(&[]).replacen('{', r#"{"\u0069d":"e2","#, 1), "repeated-member");
    check("data", r#"{"a":1,"a":2}"#, "ok");
    check_all(&[("x", "1"), ("X", "1")], "ok");
}

#[test]
fn nesting() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let check_deep = |levels, expect| {
        let line = line(&[("data", &deep(levels))]);
        let limits = Limits { data: 4096 };
        let got = match decode(&received(line.as_bytes()), &All, &limits) {
            Decoded::Event(event) => event.data.len().to_string(),
            Decoded::Malformed(m) => m.reason.code,
        };
        assert_eq!(got, expect, "{levels} levels of data");
    };
    check_deep(127, "255");
    check_deep(128, "too-deep");
    check_deep(1_000, "too-deep");
    let mixed = format!("{}1{}", r#"{"a":["#.repeat(64), "]}".repeat(64));
    check("data", &mixed, "too-deep");
    // Brackets in strings are no nesting, behind an escaped quotation mark either.
    check("correlationid", &format!("\"{}\"", "[".repeat(300)), "ok");
    check("correlationid", &format!("\"\\\"{}\"", "{".repeat(300)), "ok");
    check("correlationid", &format!("\"\\\\\\\"{}\"", "{".repeat(300)), "ok");
    check_line(&"[".repeat(100_000), "too-deep");
    check_line(&"[".repeat(100), "json");
}

#[test]
fn what_is_no_object() {
    for blank in ["", " ", "\t \r\n"] {
        check_line(blank, "empty");
    }
    for text in [
        "null",
        "1",
        "\"x\"",
        "[]",
        "{",
        "{}x",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":}",
        "{\"a\":01}",
        "\u{feff}{}",
        "{}{}",
        "{'a':1}",
    ] {
        check_line(text, "json");
    }
    check_line("{}", "subject");
    let bad_utf8 = read(&received(b"{\"id\":\"\xff\"}")).unwrap_err();
    assert_eq!(bad_utf8.reason.code, "utf-8");
    assert!(bad_utf8.reason.message.ends_with("byte 7"), "{}", bad_utf8.reason.message);
    check_line(&line(&[]).replace(',', " ,\n").replace(':', "\t: "), "ok");
}
