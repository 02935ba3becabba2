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
        listen();
        engine::describe::<M>()
    }

    fn apply(current: Option<wit::Entity>, event: wit::Event) -> Result<wit::Transition, wit::Rejection> {
        listen();
        engine::apply::<M>(current.as_ref(), &event)
    }

    fn migrate(entity: wit::Entity) -> Result<wit::Migrated, wit::Reason> {
        listen();
        engine::migrate::<M>(&entity)
    }

    fn compensate(
        current: Option<wit::Entity>,
        event: wit::Event,
        failure: wit::Failure,
    ) -> Result<wit::Transition, wit::Rejection> {
        listen();
        engine::compensate::<M>(current.as_ref(), &event, failure)
    }
}

/// Natively a panic tells its text by itself.
fn listen() {
    #[cfg(target_family = "wasm")]
    crate::panics::listen();
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
