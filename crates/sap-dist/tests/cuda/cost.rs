//! The gathers of an update, as `docs/distributed.md` has them for devices.

use super::{Check, Moment, OnDevice, device_of, pairs::sequence};
use crate::common::random::uniform_in;
use crate::common::{GATHERED_WORDS, LIMIT, Scene, difference};
use libtest_mimic::Failed;
use sap_dist::{
    Config, DeviceDistributed, DeviceTransport, Peers, Staged, Threads, Traffic, Transport,
};

pub const ALL: &[(&str, Check)] = &[("cost::gathers", gathers)];

/// The words by which ranks agree on an exchange.
const AGREED_WORDS: u64 = 3;

/// What a rank sent in the last of these updates.
fn last<T: DeviceTransport>(
    transport: &mut T,
    broad_phase: &mut DeviceDistributed,
    moments: &[Moment],
) -> Result<Traffic, Failed> {
    let stream = broad_phase.stream().clone();
    let mut before = Traffic::default();
    for moment in moments {
        before = transport.traffic();
        let own = OnDevice::new(&stream, moment, transport.rank(), transport.size())?;
        broad_phase.update(transport, own.frame())?;
    }
    Ok(difference(transport.traffic(), before))
}

/// Two frames by turns, so that memory and cuts suit the last one.
fn gathers() -> Result<(), Failed> {
    let two = sequence(Scene::dealt(uniform_in(900, [10.0; 3], 3)), 2);
    let moments = [&two[..], &two, &two].concat();
    for ranks in 1..=4_u64 {
        // By how many gathers ranks agree on an exchange.
        for (agreed, by_driver) in [(0, false), (2, true)] {
            let one = |threads: &mut Threads| {
                let device = device_of(threads.rank());
                let mut broad_phase = DeviceDistributed::new(Config::default(), device)?;
                if by_driver {
                    let device = broad_phase.stream().device().clone();
                    let mut peers = Peers::new(threads, &device)?;
                    last(&mut peers, &mut broad_phase, &moments)
                } else {
                    last(&mut Staged::new(threads), &mut broad_phase, &moments)
                }
            };
            for traffic in Threads::run(ranks as usize, LIMIT, one)? {
                let traffic = traffic?;
                let agreed = agreed * traffic.exchanges;
                let words = GATHERED_WORDS + 5 * ranks + 12 + AGREED_WORDS * agreed;
                let found = (traffic.gathers, traffic.gathered_bytes);
                let expected = (4 + agreed, 8 * words * (ranks - 1));
                if found != expected || (ranks > 1) != (traffic.exchanges > 0) {
                    return Err(format!(
                        "{ranks} ranks, driver: {by_driver}: {traffic:?}, expected {expected:?}"
                    )
                    .into());
                }
            }
        }
    }
    Ok(())
}
