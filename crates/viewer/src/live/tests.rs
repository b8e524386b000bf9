//! Frames on a device, without a picture. Without a driver these tests do nothing, unless
//! `RADSWEEP_WGPU` is set.

use super::Home;
use crate::camera::{Camera, Reach};
use crate::lines::Line;
use crate::snapshot::{Snapshot, Watch};
use glam::Vec3;
use radsweep::wgpu_device::{Adapters, Device};
use radsweep::{BroadPhase, Config};
use radsweep_scenes::{Kind, Options, Scene};

/// A scene on a device, after some frames.
struct Live {
    device: Device,
    home: Home,
    scene: Scene,
    broad_phase: BroadPhase,
}

impl Live {
    fn new(kind: Kind) -> Option<Self> {
        let device = match Device::new(Adapters::Any) {
            Ok(device) => device,
            Err(error) if std::env::var_os("RADSWEEP_WGPU").is_some() => panic!("{error}"),
            Err(error) => {
                println!("SKIPPED: {error}");
                return None;
            }
        };
        let home = Home::on(&device);
        let broad_phase = BroadPhase::on_wgpu(&device, Config::default()).expect("a broad phase");
        let options = Options {
            bodies: Some(700),
            ..Options::default()
        };
        let scene = home.scene(kind, &options, &broad_phase).expect("a scene");
        assert!(scene.balls().is_some());
        let mut live = Self {
            device,
            home,
            scene,
            broad_phase,
        };
        for _ in 0..12 {
            live.step();
        }
        Some(live)
    }

    fn step(&mut self) {
        self.scene.step(&mut self.broad_phase).expect("a frame");
    }

    fn take(&mut self, watch: Watch) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let (scene, broad_phase) = (&self.scene, &mut self.broad_phase);
        let taken = self
            .home
            .take(&mut snapshot, scene, broad_phase, &[], watch);
        taken.expect("the device answers");
        snapshot
    }
}

/// Watches all, in the view of a camera.
fn all(camera: &Camera) -> Watch {
    Watch {
        overlaps: true,
        boxes: true,
        cells: true,
        links: true,
        body: None,
        view: camera.view(1.3),
    }
}

fn near(a: Vec3, b: Vec3) {
    assert!(a.distance(b) < 1e-4 * (1.0 + b.length()), "{a} {b}");
}

#[test]
fn a_frame_on_the_device_is_seen_as_on_the_host() {
    for kind in [Kind::Particles, Kind::Galaxy] {
        let Some(mut live) = Live::new(kind) else {
            return;
        };
        let camera = Camera::around(Vec3::ZERO, 10.0);
        let found = live.take(all(&camera));
        let mut host = Snapshot::default();
        let (scene, broad_phase) = (&live.scene, &mut live.broad_phase);
        let taken = host.take(scene, broad_phase, &[], all(&camera));
        taken.expect("the device answers");
        assert!(found.live.is_some() && host.live.is_none());
        assert_eq!(found.bodies().spheres, host.picture.spheres);
        assert_eq!((found.axis, &found.refusal), (host.axis, &host.refusal));
        assert_eq!(found.subdivision.is_some(), host.subdivision.is_some());
        let [extent, expected] = [&found, &host].map(|shown| shown.extent.expect("bodies"));
        near(extent.center, expected.center);
        near(extent.corners[0], expected.corners[0]);
        near(extent.corners[1], expected.corners[1]);
        assert!((extent.radius / expected.radius - 1.0).abs() < 1e-3);
        assert!((extent.speed / expected.speed - 1.0).abs() < 1e-3);
        assert_eq!(extent.overlaps, expected.overlaps);
        let reach = |shown: &Snapshot| {
            let Reach { offsets, depths } = shown.reach(&camera.view(1.3)).expect("this view");
            [&offsets[..], &depths].concat()
        };
        for (found, expected) in reach(&found).into_iter().zip(reach(&host)) {
            assert!((found - expected).abs() < 1e-3, "{found} {expected}");
        }
        assert!(found.reach(&camera.view(1.4)).is_none(), "another view");
        // The buffers that are drawn.
        let shown = found.live.as_ref().expect("it is there");
        let ([_, _, pairs], count) = shown.rows();
        let pairs = live.device.download(pairs, 0..4 * u64::from(count));
        let pairs: Vec<u32> = pairs.and_then(|pairs| pairs.wait()).expect("the counts");
        assert_eq!(pairs, host.marks[2]);
        let (_, boxes) = shown.boxes().expect("requested");
        assert_eq!(boxes as usize, host.boxes.len());
        let (lines, count) = shown.lines().expect("requested");
        let lines = live
            .device
            .download(lines, 0..u64::from(count) * size_of::<Line>() as u64);
        let lines: Vec<Line> = lines.and_then(|lines| lines.wait()).expect("the lines");
        let ends = lines.iter().map(|line| [line.from, line.to]);
        assert!(lines.len() > 10 && ends.eq(host.links.iter().map(|link| link.ends)));
        let mut expected = Vec::new();
        let look = crate::look::Look {
            links: true,
            ..Default::default()
        };
        look.lines(&host, &mut expected);
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_frame_downloads_a_few_hundred_bytes_and_details_only_if_asked_for() {
    let Some(mut live) = Live::new(Kind::Particles) else {
        return;
    };
    let mut watch = all(&Camera::around(Vec3::ZERO, 10.0));
    let mut fetched = |watch: Watch| {
        let before = live.device.downloaded();
        live.step();
        let snapshot = live.take(watch);
        (live.device.downloaded() - before, snapshot)
    };
    let mut all = Vec::new();
    for _ in 0..9 {
        let (bytes, snapshot) = fetched(watch);
        assert!(snapshot.live.is_some_and(|live| live.boxes().is_some()));
        all.push(bytes);
    }
    // Now and then the broad phase fetches a sample of boxes, for a new plan.
    all.sort_unstable();
    assert!(
        all[0] > 96 && all[4] < 600 && all[8] < 6000,
        "{all:?} bytes"
    );
    watch.body = Some(3);
    let (bytes, snapshot) = fetched(watch);
    assert!(bytes > 32 * 700, "{bytes} bytes");
    assert!(snapshot.live.is_none() && snapshot.picked.is_some_and(|picked| picked.body == 3));
    // Bodies are downloaded once, when the host looks for them.
    watch.body = None;
    let (_, snapshot) = fetched(watch);
    let before = live.device.downloaded();
    assert_eq!(snapshot.bodies().spheres.len(), 700);
    let after = live.device.downloaded();
    assert_eq!(snapshot.instance(699).map(|ball| ball.body), Some(699));
    assert_eq!(
        (after - before, live.device.downloaded()),
        (32 * 700, after)
    );
}
