//! A machine as the component's exports.

use std::marker::PhantomData;

use crate::bindings::exports::seqgate::machine::rules as wit;
use crate::engine;
use crate::machine::Machine;

/// The contract's four functions for a machine. For [`export!`](crate::export) only.
#[doc(hidden)]
pub struct Component<M>(PhantomData<M>);

impl<M: Machine> wit::Guest for Component<M> {
    fn describe() -> wit::Description {
        engine::describe::<M>()
    }

    fn apply(current: Option<wit::Entity>, event: wit::Event) -> Result<wit::Transition, wit::Rejection> {
        engine::apply::<M>(current.as_ref(), &event)
    }

    fn migrate(entity: wit::Entity) -> Result<wit::Migrated, wit::Reason> {
        engine::migrate::<M>(&entity)
    }

    fn compensate(
        current: Option<wit::Entity>,
        event: wit::Event,
        failure: wit::Failure,
    ) -> Result<wit::Transition, wit::Rejection> {
        engine::compensate::<M>(current.as_ref(), &event, failure)
    }
}

/// Exports a machine from its crate, once. Natively it does nothing, so that several machines may stand in one test.
///
/// The crate is a `cdylib` (and an `rlib` where other crates test it), built for `wasm32-unknown-unknown`.
#[macro_export]
macro_rules! export {
    ($machine:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            type Component = $crate::Component<$machine>;
    $crate::bindings::export_rules!(Component with_types_in $crate::bindings);
        };
    };
}
