//! Decisions, in short stories: `check` delivers a line and says what became of it and of its entity.

#![allow(clippy::unwrap_used, reason = "a test may stop where it is wrong")]

mod adopt;
mod batches;
mod orderings;
mod persons;
mod refusals;
mod release;
mod rows;
mod steps;
mod story;
mod timers;
mod toy;

use std::sync::Arc;

use story::{RULES, Story};
use toy::Toy;

use super::*;
use crate::setup::{Ordering, Policy};
use crate::world::DeadKind;
use crate::writes::*;
