//! Scenes that are hard to sweep: shapes with parameters, and what may be added to them. A text
//! names each scene and reproduces it.
//!
//! `sticks:3.255.80.40,uniform:0.0.0.0/far=plane/filters=static/worlds=few/order=shuffled/n=20000/seed=7`

use super::random::Random;
use super::shapes::{Knobs, Shape};
use sap::{Aabb, Filter, FilterFlags, Frame};
use std::fmt;
use std::str::FromStr;

/// Defines an enum whose variants have names.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident: $($(#[$of:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$of])* $variant),+
        }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|choice| choice.name() == name).copied()
            }
        }
    };
}
pub(super) use named;

named! {
    /// A box that is added, far away or infinite.
    Far:
    None = "none",
    /// Ground as far as [`f32::MAX`] on all sides, which nothing touches.
    Plane = "plane",
    /// A body that fell to y = −1e8.
    Fallen = "fallen",
    /// The same, infinite.
    HalfSpace = "half-space",
    /// A box at each end of the range of `f32`.
    Ends = "ends",
}

named! {
    /// The filters of the boxes.
    Filters:
    None = "none",
    Static = "static",
    /// All but one in a hundred are static.
    NearlyStatic = "nearly-static",
    StaticOrAsleep = "static-or-asleep",
    OneGroup = "one-group",
    /// Each group has a hundred boxes.
    Groups = "groups",
    /// All are in a layer that no box pairs with.
    Apart = "apart",
    /// Eight layers, each of which pairs with itself.
    Layers = "layers",
    RandomLayers = "random-layers",
}

named! {
    /// The worlds of the boxes.
    Worlds: None = "none", Few = "few", Many = "many",
}

named! {
    /// The order of the boxes.
    Order:
    /// One part after the other, each in the order of its shape.
    Given = "given",
    Shuffled = "shuffled",
    /// The same, but harmless boxes have the indices that the CPU engine samples.
    Hidden = "hidden",
}

/// A part of a scene, with boxes of one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    pub shape: Shape,
    pub knobs: [u8; 4],
}

/// The recipe of a scene, which is deterministic.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// One or more, with equal numbers of boxes.
    pub parts: Vec<Part>,
    pub far: Far,
    pub filters: Filters,
    pub worlds: Worlds,
    pub order: Order,
    pub n: usize,
    pub seed: u64,
}

/// The boxes of a scene, with their filters and worlds.
pub struct Made {
    pub boxes: Vec<Aabb>,
    pub filters: Option<Vec<Filter>>,
    pub worlds: Option<Vec<u32>>,
}

impl Made {
    pub fn frame(&self) -> Frame<'_> {
        let mut frame = Frame::boxes(&self.boxes);
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds);
        }
        frame
    }

    /// Moves one box in a hundred by a tenth of its width, others in each frame, and lists them.
    pub fn step(&mut self, frame: usize) -> Vec<u32> {
        let moved: Vec<u32> = (frame % 100..self.boxes.len())
            .step_by(100)
            .map(|i| i as u32)
            .collect();
        for &i in &moved {
            let b = &mut self.boxes[i as usize];
            let step = 0.1 * (b.max[0] - b.min[0]);
            if step.is_finite() {
                (b.min[0], b.max[0]) = (b.min[0] + step, b.max[0] + step);
            }
        }
        moved
    }

    /// Tells whether two boxes may pair, wherever they are.
    pub fn allows(&self, a: usize, b: usize) -> bool {
        let filters = self.filters.as_ref();
        let worlds = self.worlds.as_ref();
        filters.is_none_or(|filters| filters[a].allows(&filters[b]))
            && worlds.is_none_or(|worlds| worlds[a] == worlds[b])
    }
}

impl Scene {
    /// Creates a scene of one shape with nothing added.
    pub fn of(shape: Shape, knobs: [u8; 4], n: usize) -> Self {
        Self {
            parts: vec![Part { shape, knobs }],
            far: Far::None,
            filters: Filters::None,
            worlds: Worlds::None,
            order: Order::Given,
            n,
            seed: 1,
        }
    }

    /// Creates a random scene of a shape, alone or with others.
    pub fn any(shape: Shape, n: usize, random: &mut Random) -> Self {
        let mut scene = Self::of(shape, any_knobs(random), n);
        for _ in 0..random.below(6) {
            scene.mutate(random);
        }
        scene
    }

    /// Changes one property at random. The shape of the first part stays.
    pub fn mutate(&mut self, random: &mut Random) {
        fn pick<T: Copy>(all: &[T], random: &mut Random) -> T {
            all[random.below(all.len())]
        }
        let part = random.below(self.parts.len());
        match random.below(14) {
            0 => self.far = pick(Far::ALL, random),
            1 => self.filters = pick(Filters::ALL, random),
            2 => self.worlds = pick(Worlds::ALL, random),
            3 => self.order = pick(Order::ALL, random),
            4 => self.seed = random.bits() >> 44,
            5 if self.parts.len() < 3 => self.parts.push(Part {
                shape: pick(Shape::ALL, random),
                knobs: any_knobs(random),
            }),
            6 if part > 0 => drop(self.parts.remove(part)),
            7 => self.parts[part].knobs = any_knobs(random),
            8 => {
                (self.far, self.filters) = (Far::None, Filters::None);
                (self.worlds, self.order) = (Worlds::None, Order::Given);
            }
            _ => {
                let knob = &mut self.parts[part].knobs[random.below(4)];
                let step = [1, 4, 16, 64][random.below(4)];
                *knob = match random.below(5) {
                    0 => pick(&[0, 255], random),
                    1 | 2 => knob.saturating_sub(step),
                    _ => knob.saturating_add(step),
                };
            }
        }
    }

    pub fn make(&self) -> Made {
        let mut random = Random::new(self.seed);
        let mut boxes = Vec::with_capacity(self.n);
        for (i, part) in self.parts.iter().enumerate() {
            let count = (self.n - boxes.len()) / (self.parts.len() - i);
            boxes.extend(part.shape.boxes(count, Knobs(part.knobs), &mut random));
        }
        match self.order {
            Order::Given => {}
            Order::Shuffled => {
                for i in (1..boxes.len()).rev() {
                    boxes.swap(i, random.below(i + 1));
                }
            }
            Order::Hidden => {
                for (number, i) in sampled(boxes.len()).enumerate() {
                    // On a diagonal, so that no two overlap on any axis.
                    let at = 1e6 + 3.0 * number as f32;
                    boxes[i] = Aabb::new([at; 3], [at + 1.0; 3]);
                }
            }
        }
        if let Some(last) = boxes.last_mut() {
            add_far(self.far, last);
        }
        if self.far == Far::Ends
            && let [first, .., last] = &mut boxes[..]
        {
            (*first, *last) = (cube(-3e38), cube(3e38));
        }
        let filters = (self.filters != Filters::None).then(|| {
            let one = |i| filter(self.filters, i, &mut random);
            (0..boxes.len()).map(one).collect()
        });
        let worlds = match self.worlds {
            Worlds::None => None,
            Worlds::Few => Some(8),
            Worlds::Many => Some(boxes.len() / 4 + 1),
        };
        let worlds = worlds.map(|count| boxes.iter().map(|_| random.below(count) as u32).collect());
        Made {
            boxes,
            filters,
            worlds,
        }
    }
}

fn any_knobs(random: &mut Random) -> [u8; 4] {
    [(); 4].map(|()| random.bits() as u8)
}

fn cube(at: f32) -> Aabb {
    Aabb::new([at; 3], [at; 3].map(|x| x + x.abs() * 0.01))
}

/// Puts a box far away.
fn add_far(far: Far, b: &mut Aabb) {
    const MAX: f32 = f32::MAX;
    const INF: f32 = f32::INFINITY;
    let below = -2e9;
    *b = match far {
        Far::None | Far::Ends => return,
        Far::Plane => Aabb::new([-MAX; 3], [MAX, below, MAX]),
        Far::Fallen => Aabb::new([0.0, -1e8, 0.0], [1.0, -1e8, 1.0]),
        Far::HalfSpace => Aabb::new([-INF; 3], [INF, below, INF]),
    };
}

fn filter(filters: Filters, i: usize, random: &mut Random) -> Filter {
    let flagged = |flags| Filter {
        flags,
        ..Filter::default()
    };
    let between = |layers, mask| Filter {
        layers,
        mask,
        ..Filter::default()
    };
    let grouped = |group| Filter {
        group,
        ..Filter::default()
    };
    match filters {
        Filters::None => Filter::default(),
        Filters::Static => flagged(FilterFlags::STATIC),
        Filters::NearlyStatic if i.is_multiple_of(100) => Filter::default(),
        Filters::NearlyStatic => flagged(FilterFlags::STATIC),
        Filters::StaticOrAsleep => {
            flagged([FilterFlags::STATIC, FilterFlags::ASLEEP][random.below(2)])
        }
        Filters::OneGroup => grouped(7),
        Filters::Groups => grouped(1 + i as u32 / 100),
        Filters::Apart => between(1, 2),
        Filters::Layers => {
            let layer = 1 << random.below(8);
            between(layer, layer)
        }
        Filters::RandomLayers => between(random.bits() as u32 & 15, random.bits() as u32 & 15),
    }
}

/// Returns the indices that `Sample::new` in `src/cpu/full/sample.rs` draws, or used to draw: the
/// worst case of a sample that is known beforehand.
fn sampled(n: usize) -> impl Iterator<Item = usize> {
    let size = (n / 128).clamp(192, 2048).min(n);
    let start = move |i: usize| i * n / size;
    let somewhere = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) as usize >> 7;
    (0..size).map(move |i| start(i) + somewhere(i) % (start(i + 1) - start(i)))
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.knobs;
        write!(f, "{}:{a}.{b}.{c}.{d}", self.shape.name())
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(Part::to_string).collect();
        write!(f, "{}", parts.join(","))?;
        let added = [
            ("far", self.far.name()),
            ("filters", self.filters.name()),
            ("worlds", self.worlds.name()),
            ("order", self.order.name()),
        ];
        for (what, name) in added {
            if name != "none" && name != "given" {
                write!(f, "/{what}={name}")?;
            }
        }
        write!(f, "/n={}/seed={}", self.n, self.seed)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not SHAPE:A.B.C.D, each 0 to 255");
        let (name, numbers) = text.split_once(':').ok_or_else(wrong)?;
        let knobs: Result<Vec<u8>, _> = numbers.split('.').map(str::parse).collect();
        Ok(Self {
            shape: Shape::named(name).ok_or_else(wrong)?,
            knobs: knobs
                .ok()
                .and_then(|knobs| knobs.try_into().ok())
                .ok_or_else(wrong)?,
        })
    }
}

impl FromStr for Scene {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split('/');
        let parts = words.next().unwrap_or_default().split(',');
        let parts: Result<Vec<Part>, String> = parts.map(str::parse).collect();
        let mut scene = Self {
            parts: parts?,
            ..Self::of(Shape::ALL[0], [0; 4], 20_000)
        };
        for word in words {
            let wrong = || format!("`{word}` says nothing of a scene");
            let (what, value) = word.split_once('=').ok_or_else(wrong)?;
            match what {
                "far" => scene.far = Far::named(value).ok_or_else(wrong)?,
                "filters" => scene.filters = Filters::named(value).ok_or_else(wrong)?,
                "worlds" => scene.worlds = Worlds::named(value).ok_or_else(wrong)?,
                "order" => scene.order = Order::named(value).ok_or_else(wrong)?,
                "n" => scene.n = value.parse().map_err(|_| wrong())?,
                "seed" => scene.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(scene)
    }
}
