//! R2: what makes two events the same.
//!
//! Every event carries two digests of its content. `digest` is SHA-256 over the length-prefixed machine, key, type, version
//! and data bytes. `value_digest` is the same with the data in canonical form where it is JSON: a copy that came through
//! another serialiser has another `digest` and the same `value_digest`. Keeping both means that contents can be compared by
//! value long after the payload is gone.

use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::ids::{Digest, EntityId, EventKey, Position, Ref};

/// Both digests of a content.
pub fn of_content(
    entity: &EntityId,
    kind: &str,
    version: Option<u64>,
    content_type: Option<&str>,
    data: &[u8],
) -> (Digest, Digest) {
    let digest = content(entity, kind, version, data);
    let value = match canonical::of(content_type, data) {
        Some(canonical) if canonical != data => content(entity, kind, version, &canonical),
        _ => digest,
    };
    (digest, value)
}

/// The digest of data alone, by value where it is JSON: what an intent remembers.
pub fn of_data(content_type: Option<&str>, data: &[u8]) -> Digest {
    match canonical::of(content_type, data) {
        Some(canonical) => of_bytes(&canonical),
        None => of_bytes(data),
    }
}

/// SHA-256 of some bytes.
pub fn of_bytes(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

fn content(entity: &EntityId, kind: &str, version: Option<u64>, data: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    prefixed(&mut hash, entity.machine.as_bytes());
    prefixed(&mut hash, &entity.key);
    prefixed(&mut hash, kind.as_bytes());
    match version {
        Some(version) => prefixed(&mut hash, &version.to_be_bytes()),
        None => prefixed(&mut hash, &[]),
    }
    prefixed(&mut hash, data);
    Digest(hash.finalize().into())
}

fn prefixed(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

impl Ref {
    /// The name of an event's row among the waiting and the dead.
    pub fn of_event(key: &EventKey) -> Self {
        Self::of(&[b"event", key.machine.as_bytes(), key.source.as_bytes(), key.id.as_bytes()])
    }

    /// The name of the dead letter of an event that waited, by its place in the order of deferral.
    pub fn of_letter(key: &EventKey, arrival: u64) -> Self {
        let arrival = arrival.to_be_bytes();
        Self::of(&[b"letter", key.machine.as_bytes(), key.source.as_bytes(), key.id.as_bytes(), &arrival])
    }

    /// The name of a malformed envelope's dead letter.
    pub fn of_position(position: &Position) -> Self {
        let (partition, offset) = (position.partition.to_be_bytes(), position.offset.to_be_bytes());
        Self::of(&[b"position", position.source.as_bytes(), &partition, &offset])
    }

    /// The name of a quarantined event: another content under the same key is another row.
    pub fn of_conflict(key: &EventKey, digest: &Digest) -> Self {
        Self::of(&[b"conflict", key.machine.as_bytes(), key.source.as_bytes(), key.id.as_bytes(), &digest.0])
    }

    /// The name of a dead letter that no event stands for: a timer or a migration of an entity at a revision.
    pub fn of_revision(kind: &str, entity: &EntityId, name: &str, revision: u64) -> Self {
        Self::of(&[kind.as_bytes(), entity.machine.as_bytes(), &entity.key, name.as_bytes(), &revision.to_be_bytes()])
    }

    fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            prefixed(&mut hash, part);
        }
        let bytes: [u8; 32] = hash.finalize().into();
        let mut head = [0; 8];
        head.copy_from_slice(&bytes[..8]);
        Self(u64::from_be_bytes(head))
    }
}
