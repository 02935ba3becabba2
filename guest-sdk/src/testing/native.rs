//! A machine's rules as a scenario's subject.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use seqgate_scenario as plain;

use super::convert;
use crate::engine;
use crate::machine::Machine;

/// A machine's rules, asked natively. A panic in them is a fault with its text.
pub struct Native<M>(PhantomData<M>);

impl<M: Machine> Native<M> {
    /// The rules of `M`.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M: Machine> Default for Native<M> {
    fn default() -> Self {
        Self::new()
    }
}

type Asked = Result<Result<plain::Transition, plain::Rejection>, plain::Fault>;

impl<M: Machine> plain::Subject for Native<M> {
    fn describe(&self) -> plain::Description {
        convert::description(engine::describe::<M>())
    }

    fn apply(&mut self, current: Option<&plain::Entity>, event: &plain::Event) -> Asked {
        let (current, event) = (current.map(convert::entity), convert::event(event));
        let answer = caught(|| engine::apply::<M>(current.as_ref(), &event))?;
        Ok(answer.map(convert::transition).map_err(convert::rejection))
    }

    fn compensate(&mut self, current: Option<&plain::Entity>, event: &plain::Event, failure: &plain::Failure) -> Asked {
        let (current, event) = (current.map(convert::entity), convert::event(event));
        let answer = caught(|| engine::compensate::<M>(current.as_ref(), &event, convert::failure(failure)))?;
        Ok(answer.map(convert::transition).map_err(convert::rejection))
    }
}

fn caught<T>(ask: impl FnOnce() -> T) -> Result<T, plain::Fault> {
    // Rules are pure: nothing that a panic could leave half done outlives the call.
    catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        plain::Fault(text.unwrap_or_else(|| "a panic without a text".to_owned()))
    })
}
