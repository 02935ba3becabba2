//! G4: a blocked, gapped, refused or faulting entity delays no other; only itself, in order.

use serde_json::json;

use crate::program::{Site, batch, created, ev, events, lines, machine, paid};

#[test]
fn the_neighbours_of_the_troubled_go_on() {
    // One partition, so that everybody stands in the same queue; small batches, so that trouble spans several.
    let site = Site::new(&(batch(4) + &machine("orders", "") + &events(1)));
    let mut stream = vec![
        // Its second version never comes.
        created("gapped").v(1),
        ev("order.shipped", "gapped").v(3),
        // Refused: it is not paid.
        created("blocked").v(1),
        ev("order.shipped", "blocked").v(2),
        // Waits for an order that does not exist.
        created("waiting").v(1),
        paid("waiting").v(2).set("dependson", "orders/nobody@1"),
    ];
    for n in 0..40 {
        let key = format!("o{n}");
        stream.push(created(&key).v(1));
        stream.push(ev("order.delivered", "gapped").v(4 + n));
        stream.push(paid(&key).v(2));
        stream.push(ev("order.delivered", "blocked").v(3 + n));
        stream.push(ev("order.shipped", &key).v(3));
    }
    site.write(&lines(&stream));
    site.run();
    for n in 0..40 {
        assert_eq!(site.stands("orders", &format!("o{n}")), ("shipped".into(), 3, 3));
    }
    for troubled in ["gapped", "blocked", "waiting"] {
        assert_eq!(site.stands("orders", troubled), ("pending".into(), 1, 1), "{troubled}");
    }
    assert_eq!(site.verdicts(), json!({"applied": 123, "deferred": 82, "illegal": 1}));
    assert_eq!(site.entity("orders", "gapped")["deferred"], 41);
    assert_eq!(site.entity("orders", "blocked")["deferred"], 40);
}
