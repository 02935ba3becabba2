//! What erasing an entity blanks in the rows that are kept (R5): payloads, texts and attributes. Names, versions, positions
//! and digests stay, so that copies are known. What that frees is overwritten (`secure_delete`, in `open`).

use std::collections::BTreeSet;

use seqgate_decide::ids::EntityId;

use super::failures::failed;
use super::transaction::Tx;
use crate::store::Result;

const BLANK: [&str; 5] = [
    "UPDATE history SET payload = CASE WHEN payload IS NULL THEN NULL ELSE x'' END, notes = NULL, \
     attributes = NULL WHERE machine = ?1 AND key = ?2",
    "UPDATE dead_letters SET payload = CASE WHEN payload IS NULL THEN NULL ELSE x'' END, raw = NULL, \
     message = 'erased', attributes = NULL WHERE machine = ?1 AND key = ?2",
    "UPDATE conflicts SET payload = x'', message = 'erased', attributes = NULL WHERE machine = ?1 AND key = ?2",
    "UPDATE bases SET data = x'' WHERE machine = ?1 AND key = ?2",
    // What was not sent yet is still owed; erasing again afterwards blanks it too.
    "UPDATE outbox SET data = x'', attributes = NULL, error = NULL \
     WHERE machine = ?1 AND key = ?2 AND status = 'SENT'",
];

pub(super) async fn blank(tx: &mut Tx<'_>, entities: &BTreeSet<EntityId>) -> Result<()> {
    for id in entities {
        for statement in BLANK {
            let update = sqlx::query(statement).bind(id.machine.clone()).bind(id.key.to_vec());
            update.execute(tx.conn()).await.map_err(failed)?;
        }
        let subject = id.to_string();
        sqlx::query(
            "UPDATE alarms SET message = 'erased' WHERE subject = ?1 OR substr(subject, 1, length(?1) + 1) = ?1 || ' '",
        )
        .bind(subject)
        .execute(tx.conn())
        .await
        .map_err(failed)?;
    }
    Ok(())
}
