//! JSON by value: the canonical form that R2 compares.
//!
//! Members in order of their names, no white space, numbers as exact decimals, strings unescaped as far as JSON allows.
//! Members that repeat keep their relative order, so that `{"a":1,"a":2}` is not `{"a":2,"a":1}`.

/// Objects and arrays nested deeper than this are compared by bytes.
const MAX_DEPTH: usize = 128;
/// A whole number is written out with up to this many trailing zeros, and with an exponent beyond.
const MOST_ZEROS: i64 = 40;

/// Whether a media type says JSON; an absent one does, as in CloudEvents' JSON format (section 3.1).
pub fn is_json(content_type: Option<&str>) -> bool {
    let Some(text) = content_type else { return true };
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media.ends_with("/json") || media.ends_with("+json")
}

/// The canonical bytes of data that is JSON by its content type and by its text; `None` for anything else.
pub fn of(content_type: Option<&str>, data: &[u8]) -> Option<Vec<u8>> {
    if data.is_empty() || !is_json(content_type) {
        return None;
    }
    std::str::from_utf8(data).ok()?;
    let mut reader = Reader { bytes: data, at: 0, out: Vec::with_capacity(data.len()) };
    reader.blanks();
    reader.value(1)?;
    reader.blanks();
    (reader.at == data.len()).then_some(reader.out)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' if depth > MAX_DEPTH => None,
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            self.out.extend_from_slice(word);
        })
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        self.out.push(b'[');
        self.blanks();
        if self.peek()? == b']' {
            self.at += 1;
            self.out.push(b']');
            return Some(());
        }
        loop {
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
            let separator = self.next()?;
            match separator {
                b',' | b']' => self.out.push(separator),
                _ => return None,
            }
            if separator == b']' {
                return Some(());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.take(b'{')?;
        self.out.push(b'{');
        let start = self.out.len();
        // Where each member lies in `out`: its beginning, the end of its name, its end.
        let mut members: Vec<(usize, usize, usize)> = Vec::new();
        self.blanks();
        if self.peek()? == b'}' {
            self.at += 1;
            self.out.push(b'}');
            return Some(());
        }
        loop {
            self.blanks();
            let begin = self.out.len();
            self.string()?;
            let name_end = self.out.len();
            self.blanks();
            self.take(b':')?;
            self.out.push(b':');
            self.blanks();
            self.value(depth + 1)?;
            members.push((begin, name_end, self.out.len()));
            self.blanks();
            match self.next()? {
                b',' => self.out.push(b','),
                b'}' => break,
                _ => return None,
            }
        }
        self.sort(start, &mut members);
        self.out.push(b'}');
        Some(())
    }

    fn sort(&mut self, start: usize, members: &mut [(usize, usize, usize)]) {
        let name = |m: &(usize, usize, usize)| m.0..m.1;
        if members.is_sorted_by(|a, b| self.out[name(a)] <= self.out[name(b)]) {
            return;
        }
        members.sort_by(|a, b| self.out[name(a)].cmp(&self.out[name(b)]));
        let mut sorted = Vec::with_capacity(self.out.len() - start);
        for (i, &(begin, _, end)) in members.iter().enumerate() {
            if i > 0 {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&self.out[begin..end]);
        }
        self.out.truncate(start);
        self.out.append(&mut sorted);
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        self.out.push(b'"');
        loop {
            match self.next()? {
                b'"' => {
                    self.out.push(b'"');
                    return Some(());
                }
                b'\\' => self.escape()?,
                0..=0x1f => return None,
                byte => self.out.push(byte),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let code = match self.next()? {
            b'b' => 0x08,
            b't' => 0x09,
            b'n' => 0x0a,
            b'f' => 0x0c,
            b'r' => 0x0d,
            plain @ (b'"' | b'\\' | b'/') => u32::from(plain),
            b'u' => self.unicode()?,
            _ => return None,
        };
        match code {
            0x22 | 0x5c => self.out.extend_from_slice(&[b'\\', code as u8]),
            0..=0x1f | 0xd800..=0xdfff => self.out.extend_from_slice(format!("\\u{code:04x}").as_bytes()),
            _ => {
                let mut buffer = [0; 4];
                self.out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut buffer).as_bytes());
            }
        }
        Some(())
    }

    /// The code point of `\uXXXX`, both halves of a surrogate pair taken together; a lone half stays one.
    fn unicode(&mut self) -> Option<u32> {
        let high = self.hex4()?;
        if !(0xd800..0xdc00).contains(&high) || !self.bytes[self.at..].starts_with(b"\\u") {
            return Some(high);
        }
        let before = self.at;
        self.at += 2;
        let low = self.hex4()?;
        if (0xdc00..0xe000).contains(&low) {
            return Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        }
        self.at = before;
        Some(high)
    }

    fn hex4(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code << 4 | (self.next()? as char).to_digit(16)?;
        }
        Some(code)
    }

    fn digits(&mut self) -> &[u8] {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let negative = self.peek()? == b'-';
        if negative {
            self.at += 1;
        }
        let mut digits = self.digits().to_vec();
        if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
            return None;
        }
        let mut exponent = 0_i64;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let fraction = self.digits().to_vec();
            if fraction.is_empty() {
                return None;
            }
            exponent -= fraction.len() as i64;
            digits.extend(fraction);
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let minus = self.peek() == Some(b'-');
            if minus || self.peek() == Some(b'+') {
                self.at += 1;
            }
            let power = self.digits();
            if power.is_empty() {
                return None;
            }
            let Some(power) = std::str::from_utf8(power).ok().and_then(|p| p.parse::<i32>().ok()) else {
                // Beyond any use as a number: such a one equals only its own text.
                let end = self.at;
                self.out.extend_from_slice(&self.bytes[start..end]);
                return Some(());
            };
            exponent += if minus { -i64::from(power) } else { i64::from(power) };
        }
        self.decimal(negative, &digits, exponent);
        Some(())
    }

    fn decimal(&mut self, negative: bool, digits: &[u8], mut exponent: i64) {
        let first = digits.iter().position(|d| *d != b'0').unwrap_or(digits.len());
        let last = digits.iter().rposition(|d| *d != b'0').map_or(first, |i| i + 1);
        if first == last {
            self.out.push(b'0');
            return;
        }
        exponent += (digits.len() - last) as i64;
        if negative {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[first..last]);
        match exponent {
            0 => {}
            1..=MOST_ZEROS => self.out.resize(self.out.len() + exponent as usize, b'0'),
            _ => self.out.extend_from_slice(format!("e{exponent}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expect: &str) {
        let got = of(None, json.as_bytes()).map(|b| String::from_utf8(b).expect("UTF-8"));
        assert_eq!(got.as_deref(), (!expect.is_empty()).then_some(expect), "{json}");
    }

    #[test]
    fn members_are_sorted_and_blanks_dropped() {
        check(r#" { "b" : 1 , "a" : [ 1 , { "d":2, "c":3 } ] } "#, r#"{"a":[1,{"c":3,"d":2}],"b":1}"#);
        check(r#"{"a":2,"a":1}"#, r#"{"a":2,"a":1}"#);
        check(r#"{"b":0,"a":2,"a":1}"#, r#"{"a":2,"a":1,"b":0}"#);
        check("{ }", "{}");
        check("[ ]", "[]");
    }

    #[test]
    fn numbers_are_exact_decimals() {
        check("[1, 1.0, 1e0, 10e-1, 0.1e1]", "[1,1,1,1,1]");
        check("[0, -0, 0.0, 0e9]", "[0,0,0,0]");
        check("[1999, 19.99, 1.999e3, 100, 1E2]", "[1999,1999e-2,1999,100,100]");
        check("92233720368547758070", "92233720368547758070");
        check("9007199254740993.0", "9007199254740993");
        check("1e41", "1e41");
        check("1e99999999999", "1e99999999999");
        check("-12.50", "-125e-1");
    }

    #[test]
    fn strings_are_unescaped() {
        check(r#""caf\u00e9 \/ \ud83d\ude00""#, "\"café / 😀\"");
        check(r#""\u0000\n\"\\""#, r#""\u0000\u000a\"\\""#);
        check(r#""\ud83d""#, r#""\ud83d""#);
        check(r#""\uD83D\u0041""#, r#""\ud83dA""#);
    }

    #[test]
    fn what_is_not_json_has_no_value() {
        for text in ["", "{", "{a:1}", "01", "1.", "[1,]", "{\"a\":1,}", "\"\t\"", "tru", "1 2", "\"\\x\"", "--1"] {
            check(text, "");
        }
        assert_eq!(of(Some("text/plain"), b"1.0"), None);
        assert!(of(Some("application/vnd.x+json; charset=utf-8"), b"1.0").is_some());
        assert!(of(None, "[".repeat(129).as_bytes()).is_none());
        let deep = "[".repeat(128) + &"]".repeat(128);
        check(&deep, &deep);
    }
}
