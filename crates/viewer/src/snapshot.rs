//! A frame of the simulation to show: its bodies and the requested details.

use super::camera::{Reach, View};
use super::live::Live;
use glam::Vec3;
use radsweep::internals::Subdivision;
use radsweep::{Aabb, BroadPhase, Filter, FilterFlags, Pair};
use radsweep_scenes::{Instance, Kind, Landscape, Picture, Refusal, Scene, Shape};
use rayon::prelude::*;
use std::sync::Arc;

/// The requested details of a frame, besides its bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Watch {
    /// The number of pairs of each body.
    pub overlaps: bool,
    /// All boxes.
    pub boxes: bool,
    /// The columns or cells.
    pub cells: bool,
    /// The links of all bodies.
    pub links: bool,
    /// The boxes and pairs of this body.
    pub body: Option<u32>,
    /// The view in which frames on the device that draws are looked at.
    pub view: View,
}

/// The bits of a [`Snapshot::marks`] entry. The shader uses the same bits.
pub(super) mod mark {
    /// The max number of pairs in the low bits.
    pub const MAX_PAIRS: u32 = (1 << 24) - 1;
    /// A body that never moves.
    pub const STATIC: u32 = 1 << 31;
    /// The picked body.
    pub const PICKED: u32 = 1 << 30;
    /// A body that has a pair with the picked body.
    pub const PARTNER: u32 = 1 << 29;
    /// A body whose pairs with the picked body are all resting.
    pub const RESTING: u32 = 1 << 28;
}

/// A box of the picked body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PickedBox {
    pub index: u32,
    pub aabb: Aabb,
    pub filter: Option<Filter>,
}

/// A pair of a box of the picked body (`own`) with another box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PickedPair {
    pub own: u32,
    pub other: u32,
    pub other_body: u32,
    /// The two boxes.
    pub aabbs: [Aabb; 2],
    /// Whether both boxes sleep, so that the broad phase of the scene leaves the pair out.
    pub resting: bool,
}

/// A line between the centres of two bodies with a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    pub ends: [Vec3; 2],
    /// Whether all pairs of the two bodies are resting.
    pub resting: bool,
}

/// The details of the picked body.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Picked {
    pub body: u32,
    pub boxes: Vec<PickedBox>,
    pub pairs: Vec<PickedPair>,
}

/// The approximate extent of the moving bodies, for the camera and the colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub center: Vec3,
    /// Radius of a ball that contains nearly all of them.
    pub radius: f32,
    /// The corners of the box around their centres.
    pub corners: [Vec3; 2],
    /// A high speed of a body, for the scale of the colours.
    pub speed: f32,
    /// A high number of pairs of a body, for the scale of the colours.
    pub overlaps: f32,
}

/// A scene and its requested number of bodies.
pub(super) type World = (Kind, Option<usize>);

/// One frame to show. Later frames reuse its lists.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// A serial number, which differs for each frame to draw.
    pub serial: u64,
    /// The number of the scene since the program started.
    pub scene: u64,
    pub world: Option<World>,
    /// The frame, counted from 1 since the scene was built.
    pub frame: u64,
    pub picture: Picture,
    /// For each body of each shape (boxes, chairs, spheres): bits of [`mark`], and its number of
    /// pairs if requested.
    pub marks: [Vec<u32>; 3],
    /// All boxes, if requested.
    pub boxes: Vec<Aabb>,
    pub axis: usize,
    /// The columns or cells, if requested and the strategy has any.
    pub subdivision: Option<Subdivision>,
    pub picked: Option<Picked>,
    /// The links of all bodies, if requested.
    pub links: Vec<Link>,
    pub extent: Option<Extent>,
    pub landscape: Option<Arc<Landscape>>,
    /// The bodies, if they are on the device that draws; the lists are empty then.
    pub live: Option<Live>,
    /// Why the scene takes no actions, if so.
    pub refusal: Option<Refusal>,
    /// The bits of [`mark`] and the numbers of pairs by body.
    pub(super) by_body: Vec<u32>,
}

/// Max balls of [`Snapshot::balls`].
const MAX_BALLS: usize = 1 << 16;
/// Max drawn links.
pub(super) const MAX_LINKS: usize = 1 << 18;
/// Multiple of the extent's radius beyond which a body is left out of the picture: more than two
/// and a half standard deviations.
pub(super) const FAR: f32 = 1.6;
impl Snapshot {
    pub const SHAPES: [Shape; 3] = [Shape::Box, Shape::Chair, Shape::Sphere];
    /// Radius of a chair, from its centre of mass to its feet or its top.
    pub const CHAIR: f32 = 0.6;

    /// Copies the scene's last frame in O(boxes + pairs), with these resting pairs.
    ///
    /// # Errors
    ///
    /// Errors of the device; the snapshot is then incomplete.
    pub fn take(
        &mut self,
        scene: &Scene,
        broad_phase: &mut BroadPhase,
        resting: &[Pair],
        watch: Watch,
    ) -> radsweep::Result<()> {
        self.live = None;
        scene.picture(&mut self.picture)?;
        broad_phase.download()?;
        self.refusal = scene.refusal();
        self.axis = broad_phase.report().stats.axis;
        let subdivision = watch.cells.then(|| broad_phase.subdivision());
        self.subdivision = subdivision.flatten();
        self.boxes.clear();
        if watch.boxes {
            self.boxes.extend_from_slice(scene.boxes()?);
        }
        let pairs = [broad_phase.pairs(), resting];
        self.mark(scene, pairs, watch)?;
        self.links.clear();
        if watch.links {
            self.link(scene, pairs);
        }
        self.extent = self.measure();
        Ok(())
    }

    /// Takes the scene's last frame, which stays on the device.
    #[cfg(feature = "wgpu")]
    pub fn take_live(&mut self, live: Live, scene: &Scene, broad_phase: &BroadPhase, watch: Watch) {
        let overview = live.overview();
        let extent = Extent {
            center: overview.center,
            radius: overview.radius.max(f32::MIN_POSITIVE),
            corners: [overview.low, overview.high],
            speed: overview.speed,
            overlaps: overview.overlaps,
        };
        let subdivision = watch.cells.then(|| broad_phase.subdivision());
        *self = Self {
            refusal: scene.refusal(),
            axis: broad_phase.report().stats.axis,
            subdivision: subdivision.flatten(),
            extent: Some(extent),
            live: Some(live),
            ..Self::default()
        };
    }

    /// Returns the bodies on the host. Those on the device that draws are downloaded once.
    pub fn bodies(&self) -> &Picture {
        self.live.as_ref().map_or(&self.picture, Live::picture)
    }

    /// Returns how far the bodies that can move reach in a view; `None` if they are on the device
    /// that draws, and were looked at in another view.
    pub fn reach(&self, view: &View) -> Option<Reach> {
        match &self.live {
            Some(live) => live.reach(view),
            None => Some(Reach::of(view, self.balls())),
        }
    }

    /// Returns the bytes of its lists, and of its buffers on the device.
    pub fn bytes(&self) -> usize {
        let shapes = Self::SHAPES.map(|shape| size_of_val(self.picture.of(shape)));
        let marks = self.marks.iter().map(|marks| size_of_val(&marks[..]));
        let picked = self
            .picked
            .iter()
            .map(|picked| size_of_val(&picked.pairs[..]));
        let others = [
            size_of_val(&self.boxes[..]),
            size_of_val(&self.links[..]),
            size_of_val(&self.by_body[..]),
        ];
        size_of::<Self>()
            + self.live.as_ref().map_or(0, Live::bytes)
            + shapes
                .into_iter()
                .chain(marks)
                .chain(picked)
                .chain(others)
                .sum::<usize>()
    }

    /// Returns a body, if it is drawn.
    pub fn instance(&self, body: u32) -> Option<&Instance> {
        let lists = Self::SHAPES.map(|shape| self.bodies().of(shape));
        lists.into_iter().find_map(|list| {
            let at = list.binary_search_by_key(&body, |one| one.body).ok()?;
            list.get(at)
        })
    }

    /// Tells whether a body never moves.
    pub fn is_static(&self, body: u32) -> bool {
        let marks = self.by_body.get(body as usize);
        marks.is_some_and(|marks| marks & mark::STATIC != 0)
    }

    fn mark(&mut self, scene: &Scene, pairs: [&[Pair]; 2], watch: Watch) -> radsweep::Result<()> {
        let (filters, body_of_box) = (scene.filters(), scene.body_of_box());
        let body_of = |index: u32| body_of_box.get(index as usize).copied().unwrap_or(index);
        let shapes = Self::SHAPES.map(|shape| self.picture.of(shape));
        let last = shapes
            .iter()
            .filter_map(|list| list.last())
            .map(|i| i.body)
            .max();
        let bodies = last.map_or(0, |body| body as usize + 1);
        self.by_body.clear();
        self.by_body.resize(bodies, 0);
        let marks = &mut self.by_body;
        let mut add = |body: u32, bits: u32, count: u32| {
            if let Some(mark) = marks.get_mut(body as usize) {
                let counted = (*mark & mark::MAX_PAIRS) + count;
                *mark = *mark & !mark::MAX_PAIRS | bits | counted.min(mark::MAX_PAIRS);
            }
        };
        for (filter, index) in filters.iter().zip(0..) {
            if filter.flags.contains(FilterFlags::STATIC) {
                add(body_of(index), mark::STATIC, 0);
            }
        }
        if watch.overlaps {
            for pair in pairs.into_iter().flatten() {
                add(body_of(pair.a), 0, 1);
                add(body_of(pair.b), 0, 1);
            }
        }
        let picked = watch.body.filter(|&body| (body as usize) < bodies);
        let picked = picked.map(|body| details(scene, pairs, body));
        self.picked = picked.transpose()?;
        if let Some(picked) = &self.picked {
            add(picked.body, mark::PICKED, 0);
            for pair in &picked.pairs {
                let bit = if pair.resting {
                    mark::RESTING
                } else {
                    mark::PARTNER
                };
                add(pair.other_body, bit, 0);
            }
        }
        for (marks, list) in self.marks.iter_mut().zip(shapes) {
            marks.clear();
            marks.extend(list.iter().map(|i| self.by_body[i.body as usize]));
        }
        Ok(())
    }

    /// Returns a hash of all that is drawn of the frame: equal pictures have equal hashes.
    pub fn content(&self) -> u64 {
        if self.live.is_some() {
            return self.serial;
        }
        // FNV-1a over words instead of bytes.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |words: &[u32]| {
            for &word in words {
                hash = (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3);
            }
            hash = (hash ^ words.len() as u64).wrapping_mul(0x0100_0000_01b3);
        };
        for (shape, marks) in Self::SHAPES.into_iter().zip(&self.marks) {
            add(bytemuck::cast_slice(self.picture.of(shape)));
            add(marks);
        }
        add(bytemuck::cast_slice(&self.boxes));
        for link in &self.links {
            let ends = link.ends.map(|end| end.to_array().map(f32::to_bits));
            add(&[u32::from(link.resting)]);
            add(ends.as_flattened());
        }
        // Columns, cells and the axis change only with the bodies or the strategy.
        let columns = u32::from(self.subdivision.is_some());
        add(&[self.axis as u32, self.scene as u32, columns]);
        hash
    }

    /// Adds a link for each two bodies with pairs, but for those that never move.
    fn link(&mut self, scene: &Scene, pairs: [&[Pair]; 2]) {
        let body_of_box = scene.body_of_box();
        let body_of = |index: u32| body_of_box.get(index as usize).copied().unwrap_or(index);
        let mut ends: Vec<Option<Vec3>> = vec![None; self.by_body.len()];
        for shape in Self::SHAPES {
            for instance in self.picture.of(shape) {
                let body = instance.body as usize;
                let moves = self.by_body[body] & mark::STATIC == 0;
                ends[body] = moves.then(|| instance.position.into());
            }
        }
        let of = |list: &[Pair], resting| {
            let bodies = list.par_iter().filter_map(move |pair| {
                let [a, b] = [body_of(pair.a), body_of(pair.b)];
                (a != b).then(|| (a.min(b), a.max(b), resting))
            });
            bodies.collect::<Vec<_>>()
        };
        // Awake pairs come before resting ones.
        let mut both = [of(pairs[0], false), of(pairs[1], true)].concat();
        both.par_sort_unstable();
        both.dedup_by_key(|&mut (a, b, _)| (a, b));
        let end = |body: u32| ends.get(body as usize).copied().flatten();
        let links = both.into_iter().filter_map(|(a, b, resting)| {
            let ends = [end(a)?, end(b)?];
            Some(Link { ends, resting })
        });
        self.links.extend(links.take(MAX_LINKS));
    }

    /// Returns balls around the bodies that can move, without those far away from most; of many
    /// bodies only every second, third and so on.
    pub fn balls(&self) -> impl Iterator<Item = (Vec3, f32)> {
        let lists = Self::SHAPES.map(|shape| self.picture.of(shape));
        let step = lists.iter().map(|list| list.len()).sum::<usize>() / MAX_BALLS + 1;
        let both = lists.into_iter().zip(&self.marks).zip(Self::SHAPES);
        let all = both.flat_map(move |((list, marks), shape)| {
            let moving = list.iter().zip(marks).step_by(step);
            let moving = moving.filter(|(_, mark)| *mark & mark::STATIC == 0);
            moving.map(move |(instance, _)| {
                let radius = match shape {
                    Shape::Box => Vec3::from(instance.scale).length(),
                    Shape::Chair => Self::CHAIR,
                    Shape::Sphere => instance.scale[0],
                };
                (Vec3::from(instance.position), radius)
            })
        });
        let extent = self.extent;
        all.filter(move |&(at, radius)| {
            extent.is_none_or(|extent| at.distance(extent.center) < FAR * extent.radius)
                && radius.is_finite()
        })
    }

    /// Returns the extent of the bodies that can move, or of all where none can.
    fn measure(&self) -> Option<Extent> {
        let of = |moving: bool| {
            let lists = Self::SHAPES.map(|shape| self.picture.of(shape));
            let mut sums = Sums::default();
            for (list, marks) in lists.into_iter().zip(&self.marks) {
                let both = list.iter().zip(marks);
                both.filter(|(_, mark)| !moving || *mark & mark::STATIC == 0)
                    .for_each(|(instance, &mark)| sums.add(instance, mark));
            }
            sums.extent()
        };
        of(true).or_else(|| of(false))
    }
}

/// Returns the boxes, filters and pairs of a body in O(boxes + pairs), on all threads.
fn details(scene: &Scene, pairs: [&[Pair]; 2], body: u32) -> radsweep::Result<Picked> {
    let (aabbs, filters, body_of_box) = (scene.boxes()?, scene.filters(), scene.body_of_box());
    let body_of = |index: u32| body_of_box.get(index as usize).copied().unwrap_or(index);
    let boxes = aabbs
        .iter()
        .zip(0..)
        .filter(|&(_, index)| body_of(index) == body);
    let boxes = boxes.map(|(&aabb, index)| PickedBox {
        index,
        aabb,
        filter: filters.get(index as usize).copied(),
    });
    let ours = |pair: &&Pair| body_of(pair.a) == body || body_of(pair.b) == body;
    let of = |list: &[Pair], resting| {
        let found = list.par_iter().filter(ours).map(|pair| {
            let (own, other) = if body_of(pair.a) == body {
                (pair.a, pair.b)
            } else {
                (pair.b, pair.a)
            };
            PickedPair {
                own,
                other,
                other_body: body_of(other),
                aabbs: [own, other].map(|index| aabbs[index as usize]),
                resting,
            }
        });
        found.collect::<Vec<_>>()
    };
    Ok(Picked {
        body,
        boxes: boxes.collect(),
        pairs: [of(pairs[0], false), of(pairs[1], true)].concat(),
    })
}

/// Sums over bodies, in `f64` for a million of them.
#[derive(Default)]
struct Sums {
    count: f64,
    position: glam::DVec3,
    squares: f64,
    size: f64,
    speed: f64,
    overlaps: u32,
    corners: Option<[Vec3; 2]>,
}

impl Sums {
    fn add(&mut self, instance: &Instance, mark: u32) {
        let position = Vec3::from(instance.position);
        let size = Vec3::from(instance.scale).max_element();
        if !position.is_finite() || !size.is_finite() {
            return;
        }
        self.count += 1.0;
        self.position += position.as_dvec3();
        self.squares += position.as_dvec3().length_squared();
        self.size += f64::from(size);
        self.speed += f64::from(instance.speed);
        self.overlaps = self.overlaps.max(mark & mark::MAX_PAIRS);
        let [low, high] = self.corners.unwrap_or([position; 2]);
        self.corners = Some([low.min(position), high.max(position)]);
    }

    fn extent(&self) -> Option<Extent> {
        let corners = self.corners?;
        let mean = self.position / self.count;
        let spread = (self.squares / self.count - mean.length_squared()).max(0.0);
        let half = (corners[1] - corners[0]).length() / 2.0;
        // This multiple of the standard deviation contains a cube, a ball and a disc, but not
        // outliers.
        let radius = (1.62 * spread.sqrt() as f32).min(half) + (self.size / self.count) as f32;
        Some(Extent {
            center: mean.as_vec3(),
            radius: radius.max(f32::MIN_POSITIVE),
            corners,
            speed: (2.5 * self.speed / self.count) as f32,
            overlaps: self.overlaps as f32,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::camera::Camera;
    use super::*;
    use radsweep::{Backend, Config};
    use radsweep_scenes::{Options, chair_mesh};

    pub fn taken(kind: Kind, bodies: usize, watch: Watch) -> (Snapshot, Scene, BroadPhase) {
        let options = Options {
            bodies: Some(bodies),
            ..Options::default()
        };
        let mut scene = Scene::new(kind, &options).expect("a scene");
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        scene.step(&mut broad_phase).expect("valid boxes");
        let mut snapshot = Snapshot::default();
        let taken = snapshot.take(&scene, &mut broad_phase, &[], watch);
        taken.expect("the scene is on the host");
        (snapshot, scene, broad_phase)
    }

    #[test]
    fn every_body_has_its_number_of_pairs() {
        let watch = Watch {
            overlaps: true,
            boxes: true,
            ..Watch::default()
        };
        let (snapshot, scene, broad_phase) = taken(Kind::Uniform, 500, watch);
        let marks: usize = snapshot.marks.iter().map(Vec::len).sum();
        assert_eq!(marks, 500);
        let sum: u32 = snapshot.marks.iter().flatten().sum();
        assert_eq!(sum as usize, 2 * broad_phase.pairs().len());
        assert!(sum > 500);
        assert_eq!(snapshot.boxes, scene.boxes().expect("host boxes"));
        let none = taken(Kind::Uniform, 500, Watch::default()).0;
        assert!(none.boxes.is_empty() && none.marks.iter().flatten().all(|&mark| mark == 0));
    }

    #[test]
    fn a_picked_body_shows_its_boxes_pairs_and_filters() {
        let (first, _, broad_phase) = taken(Kind::Stack, 200, Watch::default());
        assert_eq!(first.picked, None);
        let body = broad_phase.pairs()[40].b;
        let watch = Watch {
            body: Some(body),
            ..Watch::default()
        };
        let (snapshot, scene, broad_phase) = taken(Kind::Stack, 200, watch);
        let picked = snapshot.picked.as_ref().expect("it is there");
        assert_eq!((picked.body, picked.boxes.len()), (body, 1));
        assert_eq!(
            picked.boxes[0].aabb,
            scene.boxes().expect("host boxes")[body as usize]
        );
        assert_eq!(picked.boxes[0].filter, Some(scene.filters()[body as usize]));
        let pairs = broad_phase.pairs().iter();
        let with = pairs
            .filter(|pair| pair.a == body || pair.b == body)
            .count();
        assert_eq!(picked.pairs.len(), with);
        assert!(with > 0 && picked.pairs.iter().all(|pair| pair.own == body));
        let count = |bit| {
            let marks = snapshot.marks.iter().flatten();
            marks.filter(|&mark| mark & bit != 0).count()
        };
        assert_eq!(count(mark::PICKED), 1);
        assert_eq!(count(mark::PARTNER), with);
        assert_eq!(count(mark::STATIC), 1, "the plate");
    }

    #[test]
    fn resting_pairs_are_details_and_links_of_their_own() {
        let options = Options {
            bodies: Some(300),
            ..Options::default()
        };
        let mut scene = Scene::new(Kind::Uniform, &options).expect("a scene");
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        scene.step(&mut broad_phase).expect("valid boxes");
        let awake = broad_phase.pairs().to_vec();
        // A pair that is found by both broad phases counts as awake.
        let apart = Pair::new(awake[0].a, 299);
        assert!(!awake.contains(&apart));
        let resting = [awake[0], apart];
        let watch = Watch {
            overlaps: true,
            links: true,
            body: Some(awake[0].a),
            ..Watch::default()
        };
        let mut snapshot = Snapshot::default();
        let taken = snapshot.take(&scene, &mut broad_phase, &resting, watch);
        taken.expect("the scene is on the host");
        assert_eq!(snapshot.links.len(), awake.len() + 1);
        let asleep: Vec<_> = snapshot.links.iter().filter(|link| link.resting).collect();
        let center = |body: u32| Vec3::from(snapshot.picture.boxes[body as usize].position);
        assert_eq!(asleep.len(), 1);
        assert_eq!(asleep[0].ends, [center(apart.a), center(299)]);
        let picked = snapshot.picked.as_ref().expect("it is there");
        let last = picked.pairs.last().expect("the resting one");
        assert!(last.resting && last.other == 299);
        assert_eq!(snapshot.marks[0][299] & mark::RESTING, mark::RESTING);
        let sum: u32 = snapshot.by_body.iter().map(|m| m & mark::MAX_PAIRS).sum();
        assert_eq!(sum as usize, 2 * (awake.len() + 2));
    }

    #[test]
    fn a_missing_body_has_no_details() {
        let watch = Watch {
            body: Some(1_000_000),
            ..Watch::default()
        };
        assert_eq!(taken(Kind::Uniform, 10, watch).0.picked, None);
    }

    #[test]
    fn the_balls_of_every_scene_contain_its_moving_bodies_and_fill_the_picture() {
        assert!((crate::mesh::radius(&chair_mesh()) - Snapshot::CHAIR).abs() < 0.05);
        for &kind in Kind::ALL {
            let (snapshot, ..) = taken(kind, 3000, Watch::default());
            let extent = snapshot.extent.expect("bodies");
            let mut camera = Camera::around(extent.center, extent.radius);
            let view = camera.view(1.2);
            camera.fit(&Reach::of(&view, snapshot.balls()), &view);
            let seen = |(at, _)| camera.view_projection(1.2).project_point3(at);
            let low = snapshot
                .balls()
                .map(seen)
                .reduce(Vec3::min)
                .expect("bodies");
            let high = snapshot
                .balls()
                .map(seen)
                .reduce(Vec3::max)
                .expect("bodies");
            let inside = low.truncate().min_element() > -1.0 && high.truncate().max_element() < 1.0;
            assert!(inside, "{kind}: {low} {high}");
            let (size, middle) = (high - low, (high + low) / 2.0);
            // These are the centres, and some bodies of `mixed-sizes` are a third of the scene.
            assert!(size.x.max(size.y) > 1.1, "{kind}: {low} {high}");
            assert!(
                middle.truncate().abs().max_element() < 0.2,
                "{kind}: {low} {high}"
            );
            // All bodies of a stack: the plate under it is no body that moves.
            if kind == Kind::Stack {
                assert_eq!(snapshot.balls().count(), 3000);
            }
        }
    }

    #[test]
    fn the_extent_is_that_of_the_moving_bodies() {
        let extent = |kind, bodies| {
            taken(kind, bodies, Watch::default())
                .0
                .extent
                .expect("bodies")
        };
        let cube = extent(Kind::Uniform, 1000);
        assert!(cube.center.abs_diff_eq(Vec3::splat(5.0), 0.7), "{cube:?}");
        assert!((7.0..10.0).contains(&cube.radius), "{cube:?}");
        // The floor under the chairs is far wider than their block.
        let chairs = extent(Kind::FallingChairs, 12);
        assert!(chairs.radius < 12.0, "{chairs:?}");
        assert!(extent(Kind::Uniform, 1).radius > 0.1);
    }
}
