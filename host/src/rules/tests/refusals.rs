//! What is refused at registration, and that the refusal says what to do.

use super::super::prepare::{MAX_COMPONENT, digest};
use super::super::{LoadError, Refused, prepare};
use super::guest::{CONTRACT, Guest, with_metadata};
use super::load;

fn refusal(bytes: &[u8]) -> Refused {
    prepare(bytes, MAX_COMPONENT).unwrap_err()
}

/// Puts a module, with its imports and start function, into a component that looks right from outside.
fn component(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {text})")).unwrap()
}

#[test]
fn a_core_module_becomes_a_component_and_keeps_its_own_digest() {
    let module = Guest::new().module();
    let prepared = prepare(&module, MAX_COMPONENT).unwrap();
    assert_eq!(prepared.digest(), digest(&module));
    let again = prepare(prepared.component(), MAX_COMPONENT).unwrap();
    assert_eq!(again.digest(), digest(prepared.component()));
    assert_eq!(again.component(), prepared.component());
}

#[test]
fn g8_a_core_import_is_refused_by_name() {
    let guest = Guest::new();
    let text =
        guest.text().replacen("(module", r#"(module (import "wasi_snapshot_preview1" "clock_time_get" (func))"#, 1);
    let refused = refusal(&with_metadata(&text, CONTRACT));
    assert!(matches!(&refused, Refused::Import { import, .. } if import == "wasi_snapshot_preview1.clock_time_get"));
    assert!(refused.to_string().contains("build for wasm32-unknown-unknown"), "{refused}");
}

#[test]
fn g8_a_component_import_is_refused_by_name() {
    let refused = refusal(&component(r#"(import "wasi:clocks/wall-clock@0.2.6" (instance))"#));
    assert!(matches!(&refused, Refused::Import { import, .. } if import == "wasi:clocks/wall-clock@0.2.6"));
}

#[test]
fn g8_an_import_that_the_contract_brings_is_refused() {
    let contract = CONTRACT.replace("export rules;", "import now: func() -> s64; export rules;");
    let text = Guest::new().text().replacen("(module", r#"(module (import "$root" "now" (func (result i64)))"#, 1);
    let refused = refusal(&with_metadata(&text, &contract));
    assert!(matches!(refused, Refused::Import { import, .. } if import == "$root.now"));
}

#[test]
fn a_start_function_is_refused_wherever_it_hides() {
    let start = "(func $start) (start $start)";
    let guest = Guest { fields: start.into(), ..Guest::new() };
    assert_eq!(refusal(&guest.module()), Refused::Start { place: "of the module" });
    let refused = refusal(&component(&format!("(core module {start})")));
    assert_eq!(refused, Refused::Start { place: "of a module inside the component" });
    // wit-component calls `_initialize` from a start function of its own making.
    let guest = Guest { fields: r#"(func (export "_initialize"))"#.into(), ..Guest::new() };
    assert_eq!(refusal(&guest.module()), Refused::Start { place: "of a module inside the component" });
}

#[test]
fn what_is_no_wasm_is_refused_with_what_it_is() {
    assert_eq!(refusal(b"#!/bin/sh"), Refused::NotWasm { start: "\"#!/bin/s\"".into() });
    assert!(refusal(b"").to_string().contains("it is empty"));
}

#[test]
fn a_damaged_file_is_refused() {
    let module = Guest::new().module();
    assert!(matches!(refusal(&module[..module.len() - 3]), Refused::Invalid { .. }));
}

#[test]
fn size_is_checked_before_anything_is_read() {
    let refused = prepare(&[0; 11], 10).unwrap_err();
    assert_eq!(refused, Refused::TooLarge { bytes: 11, limit: 10 });
}

#[test]
fn another_world_is_refused() {
    let bare = wat::parse_str("(module)").unwrap();
    assert!(matches!(refusal(&bare), Refused::World { exports } if exports.is_empty()));
    let other = with_metadata(
        r#"(module (func (export "acme:other/thing#run")))"#,
        "package acme:other; interface thing { run: func(); } world other { export thing; }",
    );
    let refused = refusal(&other);
    assert!(matches!(&refused, Refused::World { exports } if exports == &["acme:other/thing"]), "{refused}");
    assert!(refused.to_string().contains("it exports acme:other/thing"), "{refused}");
}

#[test]
fn another_contract_version_is_refused() {
    let newer = |text: &str| text.replace("@0.1.0", "@0.2.0");
    let refused = refusal(&with_metadata(&newer(&Guest::new().text()), &newer(CONTRACT)));
    assert_eq!(refused, Refused::ContractVersion { found: "seqgate:machine/rules@0.2.0".into() });
}

#[test]
fn a_missing_function_is_refused_by_the_encoder() {
    let text = Guest::new().text().replace("rules@0.1.0#migrate", "rules@0.1.0#other");
    let refused = refusal(&with_metadata(&text, CONTRACT));
    assert!(matches!(&refused, Refused::Encode { detail } if detail.contains("migrate")), "{refused}");
}

#[test]
fn a_function_of_another_type_is_refused() {
    // Older rules of the same contract version, as a mistake would make them.
    let contract = CONTRACT.replace("revision: u64,", "revision: s64,");
    let guest = Guest { contract, ..Guest::new() };
    match load(&guest).unwrap_err() {
        LoadError::Refused(Refused::Shape { function: "apply", .. }) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn features_that_make_results_differ_between_machines_are_refused() {
    let fields = "(func (result v128) (f32x4.relaxed_max (v128.const i64x2 0 0) (v128.const i64x2 0 0)))";
    let guest = Guest { fields: fields.into(), ..Guest::new() };
    let shared = Guest { fields: "(func (drop (i32.atomic.load (i32.const 0))))".into(), ..Guest::new() };
    for guest in [guest, shared] {
        match load(&guest).unwrap_err() {
            LoadError::Refused(Refused::Invalid { .. } | Refused::Encode { .. }) => {}
            other => panic!("{other}"),
        }
    }
}
