//! Four vectors at once, one in each lane.

use glam::{Mat4, Vec3A, Vec4};
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// The number of lanes.
pub(super) const LANES: usize = 4;

/// The coordinates of a vector in each lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Vectors {
    pub x: Vec4,
    pub y: Vec4,
    pub z: Vec4,
}

impl Vectors {
    /// Takes the vector of each lane.
    pub fn gather(of: impl Fn(usize) -> Vec3A) -> Self {
        let rows = Mat4::from_cols(
            of(0).extend(0.0),
            of(1).extend(0.0),
            of(2).extend(0.0),
            of(3).extend(0.0),
        )
        .transpose();
        Self {
            x: rows.x_axis,
            y: rows.y_axis,
            z: rows.z_axis,
        }
    }

    /// Returns the vector of each lane.
    pub fn scatter(self) -> [Vec3A; LANES] {
        let columns = Mat4::from_cols(self.x, self.y, self.z, Vec4::ZERO).transpose();
        [
            columns.x_axis,
            columns.y_axis,
            columns.z_axis,
            columns.w_axis,
        ]
        .map(Vec3A::from_vec4)
    }

    pub fn dot(self, other: Self) -> Vec4 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    /// Returns two vectors that form an orthonormal base with this unit vector (Duff et al.,
    /// "Building an Orthonormal Basis, Revisited", JCGT 2017).
    pub fn tangents(self) -> [Self; 2] {
        let Self { x, y, z } = self;
        let sign = Vec4::select(z.cmplt(Vec4::ZERO), Vec4::NEG_ONE, Vec4::ONE);
        let a = Vec4::NEG_ONE / (sign + z);
        let b = x * y * a;
        [
            Self {
                x: Vec4::ONE + sign * x * x * a,
                y: sign * b,
                z: -sign * x,
            },
            Self {
                x: b,
                y: sign + y * y * a,
                z: -y,
            },
        ]
    }
}

impl Add for Vectors {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

impl Sub for Vectors {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }
}

impl Mul<Vec4> for Vectors {
    type Output = Self;

    fn mul(self, by: Vec4) -> Self {
        Self {
            x: self.x * by,
            y: self.y * by,
            z: self.z * by,
        }
    }
}

impl AddAssign for Vectors {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Vectors {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// The columns of a matrix in each lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Matrices([Vectors; 3]);

impl Matrices {
    /// Takes the matrix of each lane.
    pub fn gather<'a>(of: impl Fn(usize) -> &'a glam::Mat3A) -> Self {
        Self([
            Vectors::gather(|lane| of(lane).x_axis),
            Vectors::gather(|lane| of(lane).y_axis),
            Vectors::gather(|lane| of(lane).z_axis),
        ])
    }
}

impl Mul<Vectors> for Matrices {
    type Output = Vectors;

    fn mul(self, by: Vectors) -> Vectors {
        self.0[0] * by.x + self.0[1] * by.y + self.0[2] * by.z
    }
}
