//! A batch's world: what it wants, in one snapshot.

use seqgate_decide::ids::{EntityId, EventKey, Ref};
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::{ConflictEntry, Consumed, InboxEntry, Intent, World};

use super::SqliteStore;
use super::batch::{Rows, Template};
use super::codec::Reader;
use super::load_entities;
use super::transaction::Snapshot;
use crate::store::{Result, Wants};

pub(super) static INBOX: Template = Template::new(
    3,
    &["SELECT i.id, i.source, i.machine, i.key, i.digest, i.value_digest, i.verdict, \
       i.first_source, i.first_partition, i.first_offset FROM "],
    " AS k CROSS JOIN inbox AS i ON i.id = k.column1 AND i.source = k.column2 AND i.machine = k.column3",
);

pub(super) static CONFLICTS: Template = Template::new(
    3,
    &["SELECT c.event_id, c.source, c.machine, c.ref, c.digest, c.value_digest, c.actor IS NULL FROM "],
    " AS k CROSS JOIN conflicts AS c ON c.event_id = k.column1 AND c.source = k.column2 AND c.machine = k.column3",
);

pub(super) static HISTORY: Template = Template::new(
    3,
    &["SELECT h.machine, h.key, h.consumed, h.digest, h.value_digest, h.source FROM "],
    " AS k CROSS JOIN history AS h INDEXED BY history_by_version \
     ON h.machine = k.column1 AND h.key = k.column2 AND h.consumed = k.column3 AND h.consumed IS NOT NULL",
);

pub(super) static INTENTS: Template = Template::new(
    2,
    &["SELECT n.intent, n.machine, n.key, n.type, n.data_digest FROM "],
    " AS k CROSS JOIN intents AS n ON n.intent = k.column1 AND n.machine = k.column2",
);

impl SqliteStore {
    pub(super) async fn load_world(&self, wants: &Wants, world: &mut World) -> Result<()> {
        if wants.is_empty() {
            return Ok(());
        }
        let mut snapshot = self.snapshot().await?;
        if !wants.entities.is_empty() {
            for entity in load_entities::load(&mut snapshot, &wants.entities).await? {
                world.put_entity(entity);
            }
        }
        load_inbox(&mut snapshot, wants, world).await?;
        load_history(&mut snapshot, wants, world).await?;
        load_intents(&mut snapshot, wants, world).await?;
        snapshot.end().await
    }
}

async fn load_inbox(snapshot: &mut Snapshot<'_>, wants: &Wants, world: &mut World) -> Result<()> {
    if wants.inbox.is_empty() {
        return Ok(());
    }
    let mut keys = Rows::of(&INBOX);
    for key in &wants.inbox {
        world.put_inbox(key.clone(), None);
        keys.name(&key.id).name(&key.source).name(&key.machine);
    }
    for row in snapshot.select(&INBOX, keys.clone()).await? {
        let mut read = Reader::new(&row);
        let key = event_key(&mut read)?;
        let entity = EntityId { machine: key.machine.clone(), key: read.bytes()? };
        let (digest, value_digest) = read.digests()?;
        let verdict = read.word(Verdict::from_name)?;
        let first = read.position_opt()?;
        world.put_inbox(key, Some(InboxEntry { entity, digest, value_digest, verdict, first }));
    }
    for row in snapshot.select(&CONFLICTS, keys).await? {
        let mut read = Reader::new(&row);
        let (key, id) = (event_key(&mut read)?, Ref(read.whole()?));
        let (digest, value_digest) = read.digests()?;
        let open = read.int()? != 0;
        world.put_conflict(key, ConflictEntry { id, digest, value_digest, open });
    }
    Ok(())
}

fn event_key(read: &mut Reader<'_>) -> Result<EventKey> {
    let (id, source, machine) = (read.name()?, read.name()?, read.name()?);
    Ok(EventKey { machine, source, id })
}

async fn load_history(snapshot: &mut Snapshot<'_>, wants: &Wants, world: &mut World) -> Result<()> {
    let mut keys = Rows::of(&HISTORY);
    for (entity, version) in &wants.history {
        world.put_history(entity.clone(), *version, None);
        keys.entity(entity).whole(*version);
    }
    if keys.is_empty() {
        return Ok(());
    }
    for row in snapshot.select(&HISTORY, keys).await? {
        let mut read = Reader::new(&row);
        let (entity, version) = (read.entity()?, read.whole()?);
        let digest = read.digest_opt()?;
        let value = read.digest_opt()?;
        // A revision without an event consumes no version, save where a person dismissed what stood there.
        let source = read.name_opt()?;
        let consumed = digest.zip(source).map(|(digest, source)| Consumed {
            digest,
            value_digest: value.unwrap_or(digest),
            source,
        });
        world.put_history(entity, version, consumed);
    }
    Ok(())
}

async fn load_intents(snapshot: &mut Snapshot<'_>, wants: &Wants, world: &mut World) -> Result<()> {
    let mut keys = Rows::of(&INTENTS);
    for (machine, intent) in &wants.intents {
        world.put_intent(machine.clone(), intent.clone(), None);
        keys.name(intent).name(machine);
    }
    if keys.is_empty() {
        return Ok(());
    }
    for row in snapshot.select(&INTENTS, keys).await? {
        let mut read = Reader::new(&row);
        let (intent, entity) = (read.name()?, read.entity()?);
        let taken = Intent { kind: read.name()?, data_digest: read.digest()?, entity };
        world.put_intent(taken.entity.machine.clone(), intent, Some(taken));
    }
    Ok(())
}
