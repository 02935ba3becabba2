//! `SEQGATE_SECTION__KEY`: what the environment overrides.

const PREFIX: &str = "SEQGATE_";

/// Puts every `SEQGATE_SECTION__KEY=VALUE` into the table. A machine or source is meant by its name:
/// `SEQGATE_MACHINE__ORDERS__ON_ILLEGAL=skip`, where `_` stands for `-` in a name.
pub(super) fn overlay(
    table: &mut toml::Table,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(), String> {
    let mut settings: Vec<_> =
        environment.filter(|(name, _)| name.starts_with(PREFIX) && name.contains("__")).collect();
    settings.sort();
    for (name, value) in settings {
        let path: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_ascii_lowercase).collect();
        set(table, &path, value).map_err(|why| format!("the environment's {name}: {why}"))?;
    }
    Ok(())
}

fn set(table: &mut toml::Table, path: &[String], value: String) -> Result<(), String> {
    match path {
        [key] => {
            table.insert(key.clone(), parsed(value));
            Ok(())
        }
        [section, rest @ ..] => {
            let empty = || toml::Value::Table(toml::Table::new());
            match table.entry(section.clone()).or_insert_with(empty) {
                toml::Value::Table(inner) => set(inner, rest, value),
                toml::Value::Array(items) => set_named(items, section, rest, value),
                _ => Err(format!("`{section}` is no section")),
            }
        }
        [] => Err("it names no key".into()),
    }
}

fn set_named(items: &mut [toml::Value], section: &str, path: &[String], value: String) -> Result<(), String> {
    let [name, rest @ ..] = path else { return Err(format!("`{section}` wants a name: {section}__NAME__KEY")) };
    let is_named = |item: &&mut toml::Value| {
        item.get("name").and_then(toml::Value::as_str).is_some_and(|n| n.replace('-', "_").eq_ignore_ascii_case(name))
    };
    match items.iter_mut().find(is_named) {
        Some(toml::Value::Table(inner)) if !rest.is_empty() => set(inner, rest, value),
        _ => Err(format!("the configuration has no {section} of that name, or no key is given")),
    }
}

/// A number, a truth value, a list or a table where the text is one; the text otherwise.
fn parsed(value: String) -> toml::Value {
    let wrapped: Result<toml::Table, _> = format!("v = {value}").parse();
    match wrapped.ok().and_then(|mut t| t.remove("v")) {
        Some(value) if !value.is_datetime() => value,
        _ => toml::Value::String(value),
    }
}
