//! Scenes that live on a device of `wgpu`, on any driver. Without one these tests do nothing,
//! unless `RADSWEEP_WGPU` is set.

use radsweep::wgpu_device::{Adapters, Device};
use radsweep::{Aabb, Backend, BroadPhase, Config, Error, Pair};
use radsweep_scenes::{Instance, Kind, Options, Picture, Refusal, Scene};

fn device() -> Option<Device> {
    match Device::new(Adapters::Any) {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("RADSWEEP_WGPU").is_some() => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: {error}");
            None
        }
    }
}

fn options(bodies: usize) -> Options {
    Options {
        bodies: Some(bodies),
        ..Options::default()
    }
}

fn on_cpu() -> BroadPhase {
    let backend = Backend::Cpu;
    BroadPhase::new(Config {
        backend,
        ..Config::default()
    })
    .expect("the CPU is there")
}

/// A scene on the device, with its broad phase.
fn on_device(kind: Kind, bodies: usize, device: &Device) -> (Scene, BroadPhase) {
    let broad_phase = BroadPhase::on_wgpu(device, Config::default()).expect("a broad phase");
    let scene = Scene::on_wgpu(kind, &options(bodies), device).expect("a scene");
    (scene, broad_phase)
}

fn balls(scene: &Scene) -> Vec<Instance> {
    let mut picture = Picture::default();
    scene.picture(&mut picture).expect("a picture");
    picture.spheres
}

/// The pairs that the CPU finds for these boxes.
fn expected(boxes: &[Aabb]) -> Vec<Pair> {
    let mut on_cpu = on_cpu();
    on_cpu.update(boxes).expect("valid boxes");
    on_cpu.pairs().to_vec()
}

fn distance(a: &Instance, b: &Instance) -> f64 {
    let square = |axis: usize| f64::from(a.position[axis] - b.position[axis]).powi(2);
    (0..3).map(square).sum::<f64>().sqrt()
}

/// Returns the distance that this share of the balls keeps from those of the other scene.
fn apart(balls: &[Instance], others: &[Instance], share: f64) -> f64 {
    assert_eq!(balls.len(), others.len());
    let mut all: Vec<f64> = balls
        .iter()
        .zip(others)
        .map(|(a, b)| distance(a, b))
        .collect();
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * share) as usize]
}

/// Runs a scene on the device and on the CPU. Checks the pairs of the device by its own boxes, and
/// how far the bodies are from those on the CPU, which rounds in its own way.
fn lives_on_the_device(kind: Kind, bodies: usize, frames: usize, share: f64, allowed: f64) {
    let Some(device) = device() else { return };
    let (mut scene, mut broad_phase) = on_device(kind, bodies, &device);
    let mut host = Scene::new(kind, &options(bodies)).expect("a scene");
    let mut host_broad_phase = on_cpu();
    assert_eq!(scene.refusal(), Some(Refusal::OnDevice));
    assert_eq!(scene.landscape(), host.landscape());
    let start = balls(&scene);
    assert_eq!(apart(&start, &balls(&host), 1.0), 0.0);
    let (mut most, mut fetched) = (0, Vec::new());
    for frame in 0..frames {
        let before = device.downloaded();
        let step = scene.step(&mut broad_phase).expect("a frame");
        fetched.push(device.downloaded() - before);
        host.step(&mut host_broad_phase).expect("a frame");
        assert!(step.stages.len() >= 4 || !device.has_timestamps());
        broad_phase.download().expect("the pairs");
        let pairs = expected(scene.boxes().expect("the boxes"));
        assert!(broad_phase.pairs() == pairs, "frame {frame}");
        let mut counts = vec![0; bodies];
        for pair in &pairs {
            counts[pair.a as usize] += 1;
            counts[pair.b as usize] += 1;
        }
        let live = scene.balls().expect("on the device");
        let found = device.download(live.pairs(), 0..4 * bodies as u64);
        let found: Vec<u32> = found.and_then(|counts| counts.wait()).expect("the counts");
        assert!(found == counts, "frame {frame}");
        most = most.max(pairs.len());
    }
    assert!(most > bodies / 50, "{most} pairs");
    // Counters and times; now and then the sample of boxes of a new plan.
    fetched.sort_unstable();
    let (usual, largest) = (fetched[frames / 2], fetched[frames - 1]);
    assert!(usual < 500 && largest < 6000, "{fetched:?} bytes");
    let end = balls(&scene);
    assert!(apart(&end, &start, 0.5) > 0.1, "they moved");
    let most = apart(&end, &balls(&host), share);
    assert!(most < allowed, "{most} from those of the CPU");
    // Each run gives the same bits, whatever pool and memory it has.
    let (mut again, mut broad_phase) = on_device(kind, bodies, &device);
    let mut held = Vec::new();
    for _ in 0..frames {
        again.step(&mut broad_phase).expect("a frame");
        held.extend(again.balls().cloned());
    }
    assert!(end == balls(&again));
    // Frames that something holds stay as they were.
    let first = held[0].download().expect("the balls");
    assert!(apart(&first, &start, 1.0) > 0.0 && first != end);
    let (mut third, mut broad_phase) = on_device(kind, bodies, &device);
    third.step(&mut broad_phase).expect("a frame");
    assert!(first == balls(&third));
}

#[test]
fn particles_live_on_the_device() {
    lives_on_the_device(Kind::Particles, 1200, 25, 1.0, 1e-3);
}

#[test]
fn galaxies_live_on_the_device() {
    lives_on_the_device(Kind::Galaxy, 700, 20, 0.9, 0.02);
}

#[test]
fn momentum_stays_while_the_galaxies_meet() {
    let Some(device) = device() else { return };
    let bodies = 300;
    let (mut scene, mut broad_phase) = on_device(Kind::Galaxy, bodies, &device);
    let start = balls(&scene);
    let mut pairs = 0;
    for _ in 0..40 {
        pairs += scene.step(&mut broad_phase).expect("a frame").report.pairs;
    }
    assert!(pairs > 100, "{pairs} pairs");
    // Two fifths of the mass are in the centres, the other bodies share the rest evenly.
    let mass = |body: usize| match body.is_multiple_of(bodies / 2) {
        true => 0.4,
        false => 0.6 / (bodies / 2 - 1) as f64,
    };
    let (mut way, mut sum) = (0.0, [0.0; 3]);
    for (body, (a, b)) in start.iter().zip(&balls(&scene)).enumerate() {
        way += distance(a, b) * mass(body);
        for (axis, sum) in sum.iter_mut().enumerate() {
            *sum += f64::from(b.position[axis] - a.position[axis]) * mass(body);
        }
    }
    let drift = sum.iter().map(|along| along * along).sum::<f64>().sqrt() / way;
    assert!(way > 1.0 && drift < 1e-3, "{drift} of {way}");
}

#[test]
fn what_cannot_live_there_stays_on_the_host_and_no_other_device_runs_it() {
    let Some(device) = device() else { return };
    let scene = Scene::on_wgpu(Kind::Stack, &options(100), &device).expect("a scene");
    assert!(scene.balls().is_none() && scene.refusal() == Some(Refusal::FixedPaths));
    assert!(Scene::on_wgpu(Kind::Particles, &options(0), &device).is_err());
    let (mut scene, mut broad_phase) = on_device(Kind::Particles, 50, &device);
    let start = balls(&scene);
    let refused = scene.step(&mut on_cpu());
    assert!(matches!(refused, Err(Error::NoWgpu { .. })), "{refused:?}");
    assert!(balls(&scene) == start);
    scene.step(&mut broad_phase).expect("a frame");
    assert!(balls(&scene) != start);
}
