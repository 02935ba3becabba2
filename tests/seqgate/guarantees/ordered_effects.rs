//! G7, as far as the host writes messages: those of one entity stand in the outbox in the order of its revisions, and under
//! its own key they carry a version that is consecutive for each topic (R9).

use std::collections::BTreeMap;

use super::decided;
use crate::stream::stream;

#[test]
fn messages_stand_in_the_order_of_revisions() {
    let site = decided(&stream(13, 90));
    let messages = site.list(&["outbox", "list", "--limit", "10000"]);
    assert!(messages.len() > 60, "{}", messages.len());
    let mut last: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut versions: BTreeMap<(String, String), u64> = BTreeMap::new();
    for message in &messages {
        let entity = format!("{}/{}", message["machine"], message["key"]);
        let at = (message["revision"].as_u64().unwrap(), message["index"].as_u64().unwrap());
        let before = last.insert(entity.clone(), at);
        assert!(before < Some(at), "{entity}: {before:?} before {at:?}");
        let version = versions.entry((entity, message["topic"].to_string())).or_default();
        *version += 1;
        assert_eq!(message["entity_version"].as_u64(), Some(*version), "{message}");
        assert_eq!(message["status"], "PENDING");
    }
}
