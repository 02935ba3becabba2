use super::*;

#[test]
fn names_that_no_crate_can_have_are_refused() {
    for name in ["", "Loans", "1st", "loans_2", "größe", "-a", "a b", "../x"] {
        assert!(matches!(check_name(name), Err(ScaffoldError::Name(_))), "{name}");
    }
    assert!(matches!(check_name(&"a".repeat(65)), Err(ScaffoldError::Name(_))));
    for name in ["type", "std", "serde", "seqgate-guest", "target"] {
        assert!(matches!(check_name(name), Err(ScaffoldError::Taken(_))), "{name}");
    }
    for name in ["loans", "types", "a", "work-orders", "v2"] {
        assert!(check_name(name).is_ok(), "{name}");
    }
}

#[test]
fn types_and_event_types_are_named_after_the_machine() {
    let check = |machine, type_name: &str, noun| {
        let names = Names::of(machine);
        assert_eq!((names.type_name.as_str(), names.noun), (type_name, noun));
    };
    check("loans", "Loans", "loan");
    check("work-orders", "WorkOrders", "work-order");
    check("address", "Address", "address");
    check("s", "S", "s");
    check("text", "TextRules", "text");
}

#[test]
fn the_lock_file_is_in_cargos_order_whatever_the_name() {
    for machine in ["aaa", "loans", "zzz"] {
        let lock = lock(machine);
        let names: Vec<&str> = blocks(&lock).filter_map(name_in).collect();
        assert!(names.is_sorted() && names.contains(&machine), "{names:?}");
        assert!(names.contains(&"seqgate-guest") && !names.contains(&"wasmtime"), "{names:?}");
    }
    assert_eq!(lock(embedded::PLACEHOLDER), embedded::LOCK);
}

#[test]
fn nothing_is_written_over() {
    let folder = std::env::temp_dir().join(format!("seqgate-scaffold-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join(".git")).expect("a folder");
    let written = write("loans", &folder).expect("a folder with nothing but .git is empty");
    assert!(written.contains(&"loans/src/lib.rs".to_owned()), "{written:?}");
    let rules = fs::read_to_string(folder.join("loans/src/lib.rs")).expect("it was written");
    assert!(rules.contains("\"loan.opened\"") && !rules.contains("{{"), "{rules}");
    let again = write("loans", &folder);
    assert!(matches!(again, Err(ScaffoldError::NotEmpty { .. })), "{again:?}");
    fs::remove_dir_all(&folder).expect("it goes");
}
