//! The digest over what a transition asks of the host (R8).
//!
//! It is stored with every revision and compared across versions of the program, so its encoding is fixed here, and not
//! left to how a type happens to be printed: each effect is a tag and its fields in order; texts and bytes follow their
//! length, lists their count, and what may be absent a 0 or 1. Every number is 8 bytes, big-endian. So no two lists of
//! effects have the same encoding. No effect at all is the digest of nothing.

use sha2::{Digest as _, Sha256};

use crate::ids::Digest;
use crate::rules::{Effect, Message, When};

const SEND: u64 = 1;
const START_AT: u64 = 2;
const START_AFTER: u64 = 3;
const CANCEL: u64 = 4;

/// The digest over effects, in their order.
pub fn digest(effects: &[Effect]) -> Digest {
    let mut out = Encoder(Sha256::new());
    for effect in effects {
        match effect {
            Effect::Send(message) => out.number(SEND).message(message),
            Effect::Start { name, when: When::At(time) } => out.number(START_AT).bytes(name).number(*time as u64),
            Effect::Start { name, when: When::After(wait) } => out.number(START_AFTER).bytes(name).number(*wait),
            Effect::Cancel(name) => out.number(CANCEL).bytes(name),
        };
    }
    Digest(out.0.finalize().into())
}

struct Encoder(Sha256);

impl Encoder {
    fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_be_bytes());
        self
    }

    fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.number(bytes.as_ref().len() as u64).0.update(bytes);
        self
    }

    fn message(&mut self, message: &Message) -> &mut Self {
        let Message { topic, kind, key, content_type, attributes, data } = message;
        self.bytes(topic).bytes(kind).number(u64::from(key.is_some()));
        if let Some(key) = key {
            self.bytes(key);
        }
        self.bytes(content_type).number(attributes.len() as u64);
        for (name, value) in attributes {
            self.bytes(name).bytes(value);
        }
        self.bytes(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(topic: &str, kind: &str) -> Message {
        Message {
            topic: topic.into(),
            kind: kind.into(),
            key: None,
            content_type: "application/json".into(),
            attributes: vec![],
            data: vec![],
        }
    }

    fn check(effects: &[Effect], expect: &str) {
        assert_eq!(digest(effects).to_string(), format!("sha256:{expect}"), "{effects:?}");
    }

    /// Stored digests must stay comparable: these never change.
    #[test]
    fn the_encoding_is_fixed() {
        check(&[], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check(&[Effect::Cancel("t".into())], "8083aba8bdc1bbd846ea5e66e2d09114fca2d7e5b4cf4fcf54c2667f499e1219");
        let mut sent = message("mail", "order.paid");
        (sent.key, sent.data) = (Some(b"k".to_vec()), b"{}".to_vec());
        sent.attributes = vec![("correlationid".into(), "c".into())];
        let start = Effect::Start { name: "t".into(), when: When::After(5) };
        check(&[Effect::Send(sent), start], "07c359d5aa9fab3d485748f9eed59ab21ab8936da12ffd7caa2f16581a4f4532");
    }

    #[test]
    fn other_effects_have_another_digest() {
        let start = |when| Effect::Start { name: "t".into(), when };
        let mut keyed = message("a", "b");
        keyed.key = Some(vec![]);
        let mut attributed = message("a", "b");
        attributed.attributes = vec![("x".into(), String::new())];
        let lists = [
            vec![],
            vec![Effect::Send(message("a", "b"))],
            vec![Effect::Send(message("ab", ""))],
            vec![Effect::Send(keyed)],
            vec![Effect::Send(attributed)],
            vec![Effect::Send(message("a", "b")), Effect::Cancel("t".into())],
            vec![Effect::Cancel("t".into()), Effect::Send(message("a", "b"))],
            vec![Effect::Cancel("t".into()), Effect::Cancel("t".into())],
            vec![start(When::At(5))],
            vec![start(When::At(-5))],
            vec![start(When::After(5))],
        ];
        let digests: std::collections::BTreeSet<Digest> = lists.iter().map(|list| digest(list)).collect();
        assert_eq!(digests.len(), lists.len());
    }
}
