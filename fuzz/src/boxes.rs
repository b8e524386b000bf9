//! Makes random boxes of a frame, in every form of boxes, and from distributions that have found
//! faults.

use crate::generators::Scene;
use crate::random::Random;
use crate::shapes::Shape;
use arbitrary::{Result, Unstructured};
use sap::{Aabb, Aabb64, Filter, FilterFlags};

/// The form of a frame's boxes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Form {
    Plain,
    Swept,
    Exact,
}

/// The style of most coordinates of a run.
#[derive(Clone, Copy)]
enum Style {
    /// Few whole and half numbers, so that borders touch.
    Grid,
    Few,
    /// Denormals, and zeros of both signs.
    Denormal,
    /// Around the max number, and beyond.
    Huge,
    /// Clusters 1e30 apart.
    Clusters,
    GiantsAmongDust,
    AnyBits,
}

const STYLES: [Style; 7] = [
    Style::Grid,
    Style::Few,
    Style::Denormal,
    Style::Huge,
    Style::Clusters,
    Style::GiantsAmongDust,
    Style::AnyBits,
];

/// All data of a box in a frame.
#[derive(Clone, Copy)]
pub struct Item {
    pub start: Aabb,
    pub end: Aabb,
    pub wide: Aabb64,
    pub filter: Filter,
    pub world: u32,
}

impl Item {
    /// Returns the box that the broad phase sees in this form; `None` if it is invalid.
    pub fn given(&self, form: Form) -> Option<Aabb> {
        let valid = |b: &Aabb| b.check().is_ok();
        match form {
            Form::Plain => valid(&self.start).then_some(self.start),
            Form::Swept => {
                (valid(&self.start) && valid(&self.end)).then(|| self.start.merged(&self.end))
            }
            Form::Exact => self.wide.check().is_ok().then(|| self.wide.outward()),
        }
    }

    /// Returns whether it pairs as another one does, to the bit.
    pub fn is_same(&self, form: Form, other: &Self, others: Form) -> bool {
        let bits = |b: Option<Aabb>| b.map(|b| [b.min, b.max].map(|c| c.map(f32::to_bits)));
        let wide = |b: &Aabb64| [b.min, b.max].map(|c| c.map(f64::to_bits));
        bits(self.given(form)) == bits(other.given(others))
            && (form != Form::Exact || wide(&self.wide) == wide(&other.wide))
            && (self.filter, self.world) == (other.filter, other.world)
    }
}

/// Makes boxes mostly of one style.
pub struct Maker(Style);

impl Maker {
    pub fn new(bytes: &mut Unstructured) -> Result<Self> {
        Ok(Self(*bytes.choose(&STYLES)?))
    }

    pub fn item(&self, bytes: &mut Unstructured) -> Result<Item> {
        let start = self.any_box(bytes)?;
        let end = if bytes.ratio(1, 3)? {
            start
        } else {
            self.any_box(bytes)?
        };
        Ok(Item {
            wide: any_wide(bytes, &start)?,
            start,
            end,
            filter: any_filter(bytes)?,
            world: bytes.int_in_range(0..=2)?,
        })
    }

    pub fn any_box(&self, bytes: &mut Unstructured) -> Result<Aabb> {
        let mut corner = || -> Result<[f32; 3]> {
            Ok([
                self.number(bytes)?,
                self.number(bytes)?,
                self.number(bytes)?,
            ])
        };
        let [a, b] = [corner()?, corner()?];
        if bytes.ratio(1, 60)? {
            return Ok(Aabb::new(a, b)); // likely inverted
        }
        let pick = |f: fn(f32, f32) -> f32| std::array::from_fn(|axis| f(a[axis], b[axis]));
        Ok(Aabb::new(pick(f32::min), pick(f32::max)))
    }

    pub fn number(&self, bytes: &mut Unstructured) -> Result<f32> {
        let style = if bytes.ratio(1, 25)? {
            *bytes.choose(&STYLES)?
        } else {
            self.0
        };
        Ok(match style {
            Style::Grid => f32::from(bytes.int_in_range(-8..=8_i8)?) * 0.5,
            Style::Few => *bytes.choose(&[-1.0, -0.0, 0.0, 1.0])?,
            Style::Denormal => {
                let bits = match bytes.int_in_range(0..=2)? {
                    0 => bytes.int_in_range(0..=4)?,
                    1 => f32::MIN_POSITIVE.to_bits() - 2 + bytes.int_in_range(0..=4)?,
                    _ => bytes.int_in_range(0..=0x80_0000)?,
                };
                f32::from_bits(bits | if bytes.arbitrary()? { 1 << 31 } else { 0 })
            }
            Style::Huge => {
                const MOST: [f32; 9] = [
                    0.0,
                    1e-45,
                    1.0,
                    1e30,
                    1e38,
                    2e38,
                    f32::MAX / 2.0,
                    f32::MAX,
                    f32::INFINITY,
                ];
                let huge = *bytes.choose(&MOST)?;
                if bytes.arbitrary()? { -huge } else { huge }
            }
            // Neighbours of 1e30 are 7.6e22 apart.
            Style::Clusters => {
                *bytes.choose(&[-1e30, 0.0, 1e30])?
                    + f32::from(bytes.int_in_range(-4..=4_i8)?) * 1e23
            }
            Style::GiantsAmongDust => {
                let scale = if bytes.ratio(1, 20)? { 10.0 } else { 1e-3 };
                f32::from(bytes.int_in_range(-100..=100_i8)?) * scale
            }
            Style::AnyBits => f32::from_bits(bytes.arbitrary()?),
        })
    }

    /// Makes the boxes of a scene that is hard to sweep.
    pub fn scene(&self, bytes: &mut Unstructured) -> Result<Vec<Item>> {
        let shape = *bytes.choose(Shape::ALL)?;
        let n = bytes.int_in_range(10..=250)?;
        let made = Scene::any(shape, n, &mut Random::new(bytes.arbitrary()?)).make();
        let item = |i: usize| Item {
            start: made.boxes[i],
            end: made.boxes[(i + 1) % n],
            wide: Aabb64::new(
                made.boxes[i].min.map(f64::from),
                made.boxes[i].max.map(f64::from),
            ),
            filter: made
                .filters
                .as_ref()
                .map_or_else(Filter::default, |filters| filters[i]),
            world: made.worlds.as_ref().map_or(0, |worlds| worlds[i] % 3),
        };
        Ok((0..n).map(item).collect())
    }
}

/// Returns the box in `f64`: unchanged, with a coordinate that differs by less than `f32` can
/// represent, or with random bits.
fn any_wide(bytes: &mut Unstructured, b: &Aabb) -> Result<Aabb64> {
    let mut wide = Aabb64::new(b.min.map(f64::from), b.max.map(f64::from));
    for corner in [&mut wide.min, &mut wide.max] {
        for value in corner {
            *value = match bytes.int_in_range(0..=40_u8)? {
                0 => f64::from_bits(bytes.arbitrary()?),
                1 => *value * 1e300,
                2..=6 => value.next_up(),
                7..=11 => value.next_down(),
                _ => *value,
            };
        }
    }
    Ok(wide)
}

pub fn any_filter(bytes: &mut Unstructured) -> Result<Filter> {
    if bytes.ratio(1, 2)? {
        return Ok(Filter::default());
    }
    Ok(Filter {
        layers: bytes.int_in_range(0..=7)?,
        mask: bytes.int_in_range(0..=7)?,
        group: bytes.int_in_range(0..=2)?,
        flags: FilterFlags(bytes.int_in_range(0..=3)?),
    })
}
