//! A client that says exactly what it is told to, one request a connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Running, until};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// Where a run listens.
pub fn address(run: &Running) -> String {
    until("it listens", || {
        let told = run.told();
        let rest = told.split_once("listening on http://")?.1;
        rest.split_once('\n').map(|(address, _)| address.to_owned())
    })
}

/// Sends a request; the connection may break before there is an answer.
pub fn try_request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    // A server that refuses by the head alone may have closed already; its answer counts.
    let sent = stream.write_all(body);
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        sent?;
        read?;
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    };
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_lowercase(), v.to_owned()));
    let headers: Vec<_> = headers.collect();
    let chunked = headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    assert!(!chunked, "answers are short and have a length");
    Ok(Answer { status: status.expect("a status"), headers, body: body.to_owned() })
}

/// Sends a request that has to be answered.
#[track_caller]
pub fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    try_request(address, method, path, headers, body).unwrap()
}

/// Posts events.
#[track_caller]
pub fn post(address: &str, content_type: &str, body: &str) -> Answer {
    request(address, "POST", "/v1/events", &[("content-type", content_type)], body.as_bytes())
}

/// Gets a page.
#[track_caller]
pub fn get(address: &str, path: &str) -> Answer {
    request(address, "GET", path, &[], b"")
}
