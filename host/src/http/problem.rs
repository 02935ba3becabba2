//! Errors as RFC 9457 problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// A problem, as it is answered.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<EventProblem>,
    #[serde(skip)]
    retry_after: Option<u32>,
}

/// What is wrong with one event of a request.
#[derive(Debug, Serialize)]
pub(super) struct EventProblem {
    pub index: usize,
    pub code: String,
    pub detail: String,
}

impl Problem {
    /// A problem of this kind: a word that stays the same.
    pub fn new(status: StatusCode, kind: &str, title: &'static str, detail: impl Into<String>) -> Self {
        let kind = format!("urn:seqgate:problem:{kind}");
        Self { kind, title, status: status.as_u16(), detail: detail.into(), errors: Vec::new(), retry_after: None }
    }

    /// The word of its kind.
    pub fn code(&self) -> String {
        self.kind.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// With what is wrong with each event.
    pub fn with(mut self, errors: Vec<EventProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// After this many seconds it may work.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, super::json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

pub(super) async fn not_found() -> Problem {
    let detail = "there are POST /v1/events, GET /health/live, GET /health/ready and GET /metrics";
    Problem::new(StatusCode::NOT_FOUND, "no-such-path", "No such path", detail)
}

pub(super) async fn not_allowed() -> Problem {
    let detail = "POST for /v1/events, GET for everything else";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "Wrong method", detail)
}
