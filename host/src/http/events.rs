//! `POST /v1/events`: events in, positions out, once they are on disk.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::problem::{EventProblem, Problem};
use super::{MAX_BODY, State};
use crate::ingest::{Ingest, Refusal, Taken, binary};

const ONE: &str = "application/cloudevents+json";
const BATCH: &str = "application/cloudevents-batch+json";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    source: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    accepted: usize,
    events: Vec<Position<'a>>,
}

#[derive(Serialize)]
struct Position<'a> {
    id: Option<&'a str>,
    source: &'a str,
    partition: u32,
    offset: u64,
}

pub(super) async fn post(
    Shared(state): Shared<Arc<State>>,
    parameters: Result<Query<Parameters>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answered = take(&state, parameters, &headers, body).await;
    let (code, response) = match answered {
        Ok(response) => ("accepted".to_owned(), response),
        Err(problem) => (problem.code(), problem.into_response()),
    };
    metrics::counter!("seqgate_ingest_requests_total", "outcome" => code).increment(1);
    response
}

async fn take(
    state: &State,
    parameters: Result<Query<Parameters>, axum::extract::rejection::QueryRejection>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Query(parameters) = parameters.map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "parameters", "Unknown parameters", error.body_text())
    })?;
    let ingest = chosen(&state.host.ingests, parameters.source.as_deref())?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok()).and_then(|n| n.parse().ok());
    if length.is_some_and(|n: usize| n > MAX_BODY) {
        return Err(too_large());
    }
    let Some(_room) = state.bodies.try_take(length.unwrap_or(MAX_BODY)) else {
        let detail = "too many requests are being read; send it again in a moment";
        return Err(busy(detail));
    };
    let body = axum::body::to_bytes(body, MAX_BODY).await.map_err(|error| unread(&error))?;
    let events = events(headers, &body)?;
    drop(body);
    let taken = ingest.take(events).await.map_err(refused)?;
    let name = &*ingest.config().name;
    metrics::counter!("seqgate_ingest_events_total", "source" => name.to_owned()).increment(taken.len() as u64);
    let position = |t: &'_ Taken| (t.id.clone(), t.partition, t.offset);
    let rows: Vec<_> = taken.iter().map(position).collect();
    let events = rows.iter().map(|(id, partition, offset)| Position {
        id: id.as_deref(),
        source: name,
        partition: *partition,
        offset: *offset,
    });
    let answer = Answer { accepted: rows.len(), events: events.collect() };
    Ok((StatusCode::ACCEPTED, super::json(&answer)).into_response())
}

/// The source that is meant.
fn chosen<'i>(ingests: &'i [Ingest], name: Option<&str>) -> Result<&'i Ingest, Problem> {
    let names = || ingests.iter().map(|i| &*i.config().name).collect::<Vec<_>>().join(", ");
    let wrong = |detail| Err(Problem::new(StatusCode::BAD_REQUEST, "source", "Which source is meant?", detail));
    match (ingests, name) {
        ([], _) => wrong("no source of kind = \"embedded\" is configured".to_owned()),
        ([only], None) => Ok(only),
        (_, None) => wrong(format!("name one, as ?source=NAME: {}", names())),
        (_, Some(name)) => match ingests.iter().find(|i| &*i.config().name == name) {
            Some(ingest) => Ok(ingest),
            None => wrong(format!("no embedded source is named `{name}`; there are: {}", names())),
        },
    }
}

/// The events of a request, each as one JSON document.
fn events(headers: &HeaderMap, body: &Bytes) -> Result<Vec<Vec<u8>>, Problem> {
    let content_type = match headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) {
        Some(Ok(text)) => Some(text),
        None => None,
        Some(Err(_)) => return Err(unsupported("the Content-Type is no text")),
    };
    let media = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    match media.as_str() {
        ONE => Ok(vec![body.to_vec()]),
        BATCH => {
            let slices: Vec<&RawValue> = serde_json::from_slice(body).map_err(|error| {
                let detail = format!("the body is no JSON array: {error}");
                Problem::new(StatusCode::BAD_REQUEST, "batch", "Not a batch", detail)
            })?;
            Ok(slices.into_iter().map(|slice| slice.get().as_bytes().to_vec()).collect())
        }
        _ if headers.contains_key("ce-specversion") => Ok(vec![of_headers(headers, content_type, body)?]),
        _ => Err(unsupported("the Content-Type is neither of these, and there is no header ce-specversion")),
    }
}

/// Binary mode.
fn of_headers(headers: &HeaderMap, content_type: Option<&str>, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let attribute = |(name, value): (&'_ header::HeaderName, &'_ header::HeaderValue)| {
        let name = name.as_str().strip_prefix(binary::PREFIX)?.to_owned();
        Some((name, value.as_bytes().to_vec()))
    };
    let attributes: Vec<_> = headers.iter().filter_map(attribute).collect();
    let attributes = attributes.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
    binary::structured(attributes, content_type, body).map_err(|error| {
        let errors = vec![EventProblem { index: 0, code: "header".to_owned(), detail: error.to_string() }];
        invalid(errors)
    })
}

fn refused(refusal: Refusal) -> Problem {
    let detail = refusal.to_string();
    match refusal {
        Refusal::Invalid(events) => {
            let one = |e: crate::ingest::Invalid| EventProblem { index: e.index, code: e.code, detail: e.message };
            invalid(events.into_iter().map(one).collect())
        }
        Refusal::Busy => busy(detail),
        Refusal::Full { .. } => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "log-full", "The log is full", detail).retry_after(5)
        }
        Refusal::Store(_) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", "The store failed", detail).retry_after(1)
        }
        Refusal::Stopping => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "The host is stopping", detail).retry_after(1)
        }
    }
}

fn invalid(errors: Vec<EventProblem>) -> Problem {
    let detail = "nothing of this request was taken; `errors` says what is wrong with which event";
    Problem::new(StatusCode::BAD_REQUEST, "invalid-events", "Events that cannot be read", detail).with(errors)
}

fn busy(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", "Too much at once", detail).retry_after(1)
}

fn too_large() -> Problem {
    let detail = format!("a body may have {} MiB; send the events in smaller batches", MAX_BODY >> 20);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
}

fn unread(error: &axum::Error) -> Problem {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = source {
        if inner.to_string().contains("length limit exceeded") {
            return too_large();
        }
        source = inner.source();
    }
    Problem::new(StatusCode::BAD_REQUEST, "body", "The body cannot be read", error.to_string())
}

fn unsupported(why: &str) -> Problem {
    let detail = format!(
        "{why}. Send one event as {ONE}, a JSON array of them as {BATCH}, or attributes as headers ce-specversion, ce-id, \
         ce-source, ce-type and so on"
    );
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-type", "Unknown form of an event", detail)
}
