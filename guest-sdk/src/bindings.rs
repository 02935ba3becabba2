//! The contract's types and export macro, generated from `wit/machine.wit`. For [`export!`](crate::export) only.

#![allow(missing_docs, unsafe_code)]

wit_bindgen::generate!({
    world: "machine",
    path: "wit",
    pub_export_macro: true,
    export_macro_name: "export_rules",
    default_bindings_module: "seqgate_guest::bindings",
});
