//! Sensors, for the demo: what a sensor said last. Made for snapshot ordering, where a later report replaces an earlier
//! one and gaps do not matter, so that every event may be the first that is seen of a sensor.
//!
//! **One rule here is wrong on purpose**: a report with `"calibration": 0` divides by zero. That is a panic, which is a
//! trap in Wasm, which the host parks as a `fault` of this one event. Look at it, do not copy it.
//!
//! Codes: `wrong-state`, and the SDK's `unknown-type` and `bad-data`.

use seqgate_guest::prelude::*;

seqgate_guest::table! {
    /// The rules of a sensor.
    pub machine Sensors "sensors", schema 1;

    states {
        Online  "online"  within 1 hours;
        Offline "offline";
        Retired "retired" terminal;
    }
    events {
        Reported(Report) "sensor.reported": absent => Online, live => Online;
        Lost             "sensor.lost":     absent => Offline, live => Offline;
        Retired          "sensor.retired":  absent => Retired, live => Retired;
    }
}

seqgate_guest::export!(Sensors);
seqgate_guest::scenario_tests!(Sensors);

/// What is kept about a sensor.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sensor {
    /// The last reading, in thousandths of a degree Celsius; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    celsius: Option<i64>,
}

/// `sensor.reported`.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// In thousandths of a degree Celsius.
    celsius: i64,
    /// What the sensor's raw number is to be divided by; 1 where it is absent.
    calibration: Option<i64>,
}

impl Machine for Sensors {
    type Data = Sensor;

    fn apply(sensor: Option<Sensor>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        let sensor = sensor.unwrap_or_default();
        Ok(match event {
            Event::Reported(report) => {
                // WRONG ON PURPOSE: nobody has asked whether the divisor is 0.
                let celsius = report.celsius / report.calibration.unwrap_or(1);
                cx.to(State::Online, Sensor { celsius: Some(celsius) })
            }
            Event::Lost => cx.to(State::Offline, sensor),
            Event::Retired => cx.to(State::Retired, sensor),
        })
    }
}
