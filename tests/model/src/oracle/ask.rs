//! What the generator asks of the oracle besides what a run can be asked.

use super::Oracle;
use crate::machines::Facts;
use crate::{EntityId, Event, LetterId};

impl Oracle {
    /// The entity's state.
    pub(crate) fn state(&self, id: &EntityId) -> Option<String> {
        self.view(id).state
    }

    /// The facts of its data.
    pub(crate) fn kept(&self, id: &EntityId) -> Facts {
        self.view(id).facts
    }

    /// The layout that the rules in force write.
    pub(crate) fn schema(&self, machine: &str) -> u32 {
        self.rules[machine].schema
    }

    /// The entity's data has another layout than the rules in force write.
    pub(crate) fn schema_differs(&self, id: &EntityId) -> bool {
        self.view(id).schema.is_some_and(|s| s != self.rules[&id.machine].schema)
    }

    /// The rules in force read the entity's other layout.
    pub(crate) fn can_migrate(&self, id: &EntityId) -> bool {
        self.schema_differs(id) && self.view(id).schema.is_some_and(|s| self.rules[&id.machine].reads.contains(&s))
    }

    /// The event in a dead letter.
    pub(crate) fn letter_event(&self, id: &LetterId) -> Option<Event> {
        let index = (0..self.letters.len()).find(|i| self.letter_id(*i) == *id)?;
        self.letters[index].item.as_ref().map(|item| item.event.clone())
    }
}
