//! Entities of another system, taken over in bulk: many in one guarded transaction, decided by the core one by one.

use std::collections::BTreeSet;

use seqgate_decide::decide::{Import, Input, Undecided, decide};
use seqgate_decide::digest;
use seqgate_decide::ids::EntityId;
use seqgate_decide::machine::Machines;
use seqgate_decide::rules::Reason;
use seqgate_decide::world::{Entity, Need, World};
use seqgate_decide::writes::{Actor, AuditRow, Cause};

use super::RunError;
use super::engine::{Act, Engine, Patience, Pending, activations};
use crate::store::views::Page;
use crate::store::{Commit, NextStep, OperationId, StoreError};

/// What became of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// It was written.
    Imported,
    /// It was written before, the same.
    Already,
    /// It stands here otherwise, as the texts say.
    Differs(Vec<String>),
    /// It cannot be written.
    Refused(Reason),
}

impl Engine {
    /// Writes those that are not there yet, in one transaction, and releases what waited for them. Names are unique.
    ///
    /// # Errors
    /// The store's errors that waiting does not mend.
    pub async fn adopt(
        &self,
        machines: &mut Machines,
        by: &Actor,
        imports: &[Import],
        subject: &str,
        dry: bool,
    ) -> Result<Vec<Adopted>, RunError> {
        let mut patience = Patience::new();
        let operation = OperationId(rand::random());
        loop {
            let mut world = World::new();
            self.load(imports.iter().map(|i| Need::Entity(i.entity.clone())), &mut world).await?;
            let (now, mut pending) = (self.clock.now(), Pending::new(world));
            let mut found = Vec::with_capacity(imports.len());
            for import in imports {
                found.push(self.adopt_one(machines, by, import, now, &mut pending).await?);
            }
            let written = found.iter().filter(|f| **f == Adopted::Imported).count();
            if dry || written == 0 {
                return Ok(found);
            }
            pending.writes.audit.push(AuditRow {
                at: now,
                by: by.clone(),
                action: "entity import".into(),
                subject: subject.into(),
                outcome: format!("{written} imported"),
            });
            let ready: BTreeSet<EntityId> = pending.ready.clone();
            let acts = std::mem::take(&mut pending.acts);
            let (writes, guards) = pending.rows();
            let mut commit = Commit::new(writes, now);
            commit.guards = guards;
            commit.operation = Some(operation);
            commit.activations = activations(machines, writes);
            match self.commit(&commit, &acts).await {
                Ok(()) | Err(StoreError::AlreadyCommitted) => {
                    self.release(machines, ready).await?;
                    return Ok(found);
                }
                Err(error) => match error.next_step() {
                    NextStep::Redo => patience.raced(&error).await,
                    NextStep::Reload => *machines = self.machines().await?,
                    NextStep::Retry => patience.wait_out(error, "import").await?,
                    _ => return Err(error.into()),
                },
            }
        }
    }

    async fn adopt_one(
        &self,
        machines: &mut Machines,
        by: &Actor,
        import: &Import,
        now: i64,
        pending: &mut Pending,
    ) -> Result<Adopted, RunError> {
        let input = Input::Import { by: by.clone(), import: import.clone() };
        loop {
            match tokio::task::block_in_place(|| decide(&pending.world, machines, &input, now)) {
                Ok(decision) => {
                    pending.take(decision, Act::Other);
                    return Ok(Adopted::Imported);
                }
                Err(Undecided::Need(need)) => self.load([need], &mut pending.world).await?,
                Err(Undecided::Refused(reason)) if reason.code == "exists" => {
                    let Some(entity) = pending.world.get(&import.entity).cloned() else {
                        return Ok(Adopted::Refused(reason));
                    };
                    return self.compare(import, &entity).await;
                }
                Err(Undecided::Refused(reason)) => return Ok(Adopted::Refused(reason)),
            }
        }
    }

    /// An entity that is there: the same import wrote it, whatever came since, or it differs.
    async fn compare(&self, import: &Import, entity: &Entity) -> Result<Adopted, RunError> {
        let first = self.store.history(&import.entity, &Page::first(1)).await?.items.into_iter().next();
        let same = first.is_some_and(|row| {
            row.cause == Cause::Import
                && row.version == import.version
                && row.next_state.as_deref() == Some(&*import.state)
                && row.schema == import.schema
                && row.data_digest == digest::of_bytes(&import.data)
        });
        let differs = differences(import, entity);
        Ok(if same || differs.is_empty() { Adopted::Already } else { Adopted::Differs(differs) })
    }
}

/// What tells another system's entity from the one that stands here, a text for each.
pub fn differences(import: &Import, entity: &Entity) -> Vec<String> {
    let mut found = Vec::new();
    if entity.version != import.version {
        found.push(format!("version {} here, {} there", entity.version, import.version));
    }
    if entity.erased {
        found.push("it was erased here".to_owned());
    }
    if entity.state.as_deref() != Some(&*import.state) {
        found.push(format!("state {} here, {} there", entity.state.as_deref().unwrap_or("none"), import.state));
    }
    if entity.schema != import.schema {
        found.push(format!("schema {} here, {} there", entity.schema, import.schema));
    }
    let json = Some("application/json");
    if entity.data != import.data && digest::of_data(json, &entity.data) != digest::of_data(json, &import.data) {
        found.push("data".to_owned());
    }
    found
}
