//! No statement of a batch, and no list, reads a table from end to end.

use sqlx::{AssertSqlSafe, Row as _};

use super::super::{
    SqliteStore, commit, due, list_entities, list_events, list_operations, list_refusals, load, load_entities, status,
    write_effects, write_entities, write_refusals,
};
use super::support::*;
use crate::store::views::*;

async fn plan(store: &SqliteStore, sql: &str) -> Vec<String> {
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&store.readers).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail")).collect()
}

/// Reading the rows that are given as VALUES from end to end is no scan of a table.
fn scans(plan: &[String]) -> Vec<&String> {
    let given = ["SCAN k", "SCAN CONSTANT ROW", "SCAN (subquery", "SCAN 8-ROW VALUES CLAUSE"];
    plan.iter().filter(|line| line.starts_with("SCAN") && !given.iter().any(|g| line.starts_with(g))).collect()
}

#[tokio::test]
async fn a_batchs_statements_search() {
    let folder = Folder::new();
    let store = folder.open().await;
    for template in [
        &load::INBOX,
        &load::CONFLICTS,
        &load::HISTORY,
        &load::INTENTS,
        &load_entities::ENTITIES,
        &load_entities::TIMERS,
        &load_entities::DEFERRED,
        &load_entities::DEAD,
        &load_entities::WAITERS,
        &commit::GUARDS,
        &write_entities::ENTITIES,
        &write_entities::TOUCHED,
        &write_entities::HISTORY,
        &write_entities::INBOX,
        &write_entities::INBOX_AGAIN,
        &write_refusals::READY,
        &write_refusals::GONE,
        &write_refusals::WAITS_GONE,
        &write_refusals::DEAD_CHANGED,
        &write_refusals::CONFLICTS_CHANGED,
        &write_effects::TIMERS_CLOSED,
        &write_effects::CLEARED,
    ] {
        for rows in [1, 8] {
            let sql = template.sql(rows);
            let plan = plan(&store, &sql).await;
            assert!(scans(&plan).is_empty(), "{sql}\n{plan:#?}");
        }
    }
}

/// Lists read an index in its order: from the cursor on, and no further than the page; nothing is sorted but pages.
#[tokio::test]
async fn lists_follow_an_index() {
    let folder = Folder::new();
    let store = folder.open().await;
    let orders = || Some("orders".into());
    let entities = |machine, state| EntityFilter { machine, state, blocked: false };
    let deferred = |machine, entity, reason| DeferredFilter { machine, entity, reason };
    let dead = |machine, status| DeadFilter { machine, status, class: None };
    let gap = Some(seqgate_decide::verdict::DeferReason::Gap);
    let open = Some(seqgate_decide::writes::DeadStatus::Open);
    let lists = [
        list_entities::entities_sql(&entities(None, None)),
        list_entities::entities_sql(&entities(orders(), None)),
        list_entities::entities_sql(&entities(orders(), Some("paid".into()))),
        list_entities::GAPS.to_owned(),
        list_events::deferred_sql(&deferred(None, None, None)),
        list_events::deferred_sql(&deferred(orders(), None, gap)),
        list_events::BY_VERSION.to_owned(),
        list_events::BY_ENTITY.to_owned(),
        list_refusals::dead_sql(&dead(None, None)),
        list_refusals::dead_sql(&dead(orders(), None)),
        list_refusals::dead_sql(&dead(None, open)),
        list_refusals::conflicts_sql(false, true),
        list_refusals::conflicts_sql(true, false),
        list_operations::outbox_sql(&OutboxFilter::default()),
        list_operations::outbox_sql(&OutboxFilter { machine: None, status: Some(OutboxStatus::Pending) }),
        list_operations::TIMERS.to_owned(),
        list_operations::ALARMS.to_owned(),
        list_operations::STANDING.to_owned(),
        due::TIMERS.to_owned(),
        due::OVERDUE.to_owned(),
    ];
    for sql in lists {
        let plan = plan(&store, &sql).await;
        assert!(scans(&plan).is_empty(), "{sql}\n{plan:#?}");
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE FOR ORDER BY")), "{sql}\n{plan:#?}");
    }
    // An entity's waiting events, the ready ones and the sums read small indexes whole.
    let whole = [list_events::deferred_sql(&deferred(None, Some(id(b"a")), None)), due::READY.to_owned()];
    let sums = status::STANDS.iter().chain([&status::ENTITIES, &status::WITHOUT_REVISION]).map(|sql| sql.to_string());
    for sql in whole.into_iter().chain(sums) {
        let plan = plan(&store, &sql).await;
        assert!(
            plan.iter().all(|line| !line.starts_with("SCAN") || line.contains("INDEX") || line.contains("subquery")),
            "{sql}\n{plan:#?}"
        );
    }
}
