//! The choice of a scene, and why one could not be built.

use std::fmt;
use std::str::FromStr;

/// Defines [`Kind`] and its methods from a table with an entry for each scene: a sentence about it,
/// its name, default bodies and frames, and the boxes that a body counts for in the limit.
macro_rules! kinds {
    ($(#[doc = $about:literal] $kind:ident($name:literal) {
        bodies: $bodies:literal, frames: $frames:literal, boxes: $boxes:literal
    })*) => {
        /// A scene. It parses from and displays as its name on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $(#[doc = $about] $kind,)*
        }

        impl Kind {
            /// All scenes.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns a sentence about what moves.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$kind => $about.trim_ascii(),)* }
            }

            /// Returns the default number of bodies.
            #[must_use]
            pub const fn default_bodies(self) -> usize {
                match self { $(Self::$kind => $bodies,)* }
            }

            /// Returns the default number of frames. The chairs pile up within theirs.
            #[must_use]
            pub const fn default_frames(self) -> u32 {
                match self { $(Self::$kind => $frames,)* }
            }

            /// Tells whether [`Options::density`] has an effect.
            #[must_use]
            pub const fn has_density(self) -> bool {
                matches!(self, Self::Uniform | Self::Clustered | Self::MixedSizes)
            }

            /// Returns the max number of bodies: [`Options::MAX_BOXES`] over the boxes of a body.
            const fn max_bodies(self) -> usize {
                Options::MAX_BOXES / match self { $(Self::$kind => $boxes,)* }
            }
        }
    };
}

kinds! {
    /// Chairs that fall onto a heap: rigid bodies of nine boxes, with full physics.
    FallingChairs("falling-chairs") {
        bodies: 1500, frames: 300, boxes: 16
    }
    /// Balls that flow down a landscape and collide with it and with each other.
    Particles("particles") {
        bodies: 50_000, frames: 300, boxes: 1
    }
    /// Two galaxies that meet: bodies attract each other by gravity and bounce where they touch.
    Galaxy("galaxy") {
        bodies: 8192, frames: 300, boxes: 64
    }
    /// Drifting boxes of similar size, uniformly distributed.
    Uniform("uniform") {
        bodies: 100_000, frames: 60, boxes: 1
    }
    /// Drifting boxes in clusters of very different density.
    Clustered("clustered") {
        bodies: 100_000, frames: 60, boxes: 1
    }
    /// Drifting boxes with sizes over six decades.
    MixedSizes("mixed-sizes") {
        bodies: 100_000, frames: 60, boxes: 1
    }
    /// Towers of boxes on a ground plate, face to face, sheared by a travelling wave.
    Stack("stack") {
        bodies: 100_000, frames: 60, boxes: 1
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found
            .copied()
            .ok_or_else(|| Error::UnknownScene { name: name.into() })
    }
}

/// Why a scene could not be created.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No scene has this name.
    #[error("unknown scene `{name}`: known are {}", Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))]
    UnknownScene {
        /// The unknown name.
        name: String,
    },
    /// The number of bodies is zero or too large.
    #[error("{bodies} bodies requested, but this scene can have 1 to {limit}")]
    Bodies {
        /// The requested number of bodies.
        bodies: usize,
        /// The max number of bodies of this scene.
        limit: usize,
    },
    /// The density is out of range.
    #[error("density {density} is not between {} and {}", Options::DENSITIES.0, Options::DENSITIES.1)]
    Density {
        /// The requested density.
        density: f32,
    },
    /// The GPU, or a call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] radsweep::gpu::Error),
    /// A sort on the GPU failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Sort(#[from] radsweep::sort::Error),
    /// The device of `wgpu`, or a call to it, failed.
    #[cfg(feature = "wgpu")]
    #[error(transparent)]
    Wgpu(#[from] radsweep::Error),
}

/// The options of a scene.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of chairs, or of boxes in the other scenes; `None` for [`Kind::default_bodies`].
    pub bodies: Option<usize>,
    /// Seed of the random arrangement.
    pub seed: u64,
    /// Multiplies the pairs per box of `uniform`, `clustered` and `mixed-sizes`.
    pub density: f32,
}

impl Options {
    /// Max boxes of a scene. An entity and its row take some 200 bytes.
    pub const MAX_BOXES: usize = 1 << 26;
    /// Min and max [`Options::density`].
    pub const DENSITIES: (f32, f32) = (1e-3, 1e3);
}

impl Options {
    /// Checks the options for a scene and returns the number of bodies.
    ///
    /// # Errors
    ///
    /// [`Error::Bodies`] or [`Error::Density`].
    pub fn bodies(&self, kind: Kind) -> Result<usize, Error> {
        let bodies = self.bodies.unwrap_or(kind.default_bodies());
        let limit = kind.max_bodies();
        if !(1..=limit).contains(&bodies) {
            return Err(Error::Bodies { bodies, limit });
        }
        let density = self.density;
        if !(Self::DENSITIES.0..=Self::DENSITIES.1).contains(&density) {
            return Err(Error::Density { density });
        }
        Ok(bodies)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bodies: None,
            seed: 1,
            density: 1.0,
        }
    }
}
