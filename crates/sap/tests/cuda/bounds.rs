//! The boxes of meshes on the device, against a plain loop.

use super::{sized, text};
use crate::common::equal;
use crate::common::mesh::{
    BAD_OFFSETS, SHAPES, offsets, plain_objects, plain_triangles, same_boxes, triangles, vertices,
};
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, Error, InvalidReason, MeshBounds, Strategy};

type Check = fn() -> Result<(), Failed>;

pub const ALL: &[(&str, Check)] = &[
    ("bounds::triangles", of_triangles),
    ("bounds::objects", of_objects),
    ("bounds::one_object_among_many", one_among_many),
    ("bounds::bad_indices", bad_indices),
    ("bounds::a_broken_vertex_is_a_bad_box", broken_vertex),
];

/// A stream and the kernels on it.
struct Gpu {
    stream: gpu::Stream,
    bounds: MeshBounds,
}

impl Gpu {
    fn new() -> Result<Self, Failed> {
        let device = gpu::Device::first().map_err(text)?;
        Ok(Self {
            stream: gpu::Stream::new(&device).map_err(text)?,
            bounds: MeshBounds::new(&device).map_err(text)?,
        })
    }

    /// Writes the boxes at an odd multiple of 4 bytes, which is a valid slice.
    fn run(
        &self,
        n: usize,
        work: impl FnOnce(gpu::SliceMut<Aabb>) -> sap::Result<()>,
    ) -> Result<Vec<[u32; 6]>, Error> {
        let mut memory = self.stream.alloc_zeroed::<u32>(6 * n + 1)?;
        work(memory.range_mut(1..)?.cast()?)?;
        let words = self.stream.to_vec(memory.slice())?;
        assert_eq!(words[0], 0, "written before the first box");
        Ok(bytemuck::cast_slice(&words[1..]).to_vec())
    }

    fn triangles(&self, v: &[[f32; 3]], t: &[[u32; 3]]) -> Result<Vec<[u32; 6]>, Error> {
        let (v, on_device) = (self.stream.from_slice(v)?, self.stream.from_slice(t)?);
        self.run(t.len(), |boxes| {
            let (v, t) = (v.slice(), on_device.slice());
            self.bounds.aabbs_from_mesh(&self.stream, v, t, boxes)
        })
    }

    fn objects(&self, v: &[[f32; 3]], o: &[u32]) -> Result<Vec<[u32; 6]>, Error> {
        let (v, on_device) = (self.stream.from_slice(v)?, self.stream.from_slice(o)?);
        self.run(o.len().saturating_sub(1), |boxes| {
            let (v, o) = (v.slice(), on_device.slice());
            self.bounds.aabbs_from_objects(&self.stream, v, o, boxes)
        })
    }
}

fn of_triangles() -> Result<(), Failed> {
    let gpu = Gpu::new()?;
    for (seed, &(n, _)) in SHAPES.iter().enumerate().take(sized(SHAPES.len(), 8)) {
        for strange in [false, true] {
            let mut random = Random::new(seed as u64);
            let vertices = vertices(&mut random, n, strange);
            let triangles = triangles(&mut random, 2 * n, n);
            let found = gpu.triangles(&vertices, &triangles).map_err(text)?;
            same_boxes(&found, &plain_triangles(&vertices, &triangles))?;
        }
    }
    Ok(())
}

fn of_objects() -> Result<(), Failed> {
    let gpu = Gpu::new()?;
    for (seed, &(n, most)) in SHAPES.iter().enumerate() {
        for strange in [false, true] {
            let mut random = Random::new(seed as u64);
            let vertices = vertices(&mut random, n, strange);
            let offsets = offsets(&mut random, n, most);
            let found = gpu.objects(&vertices, &offsets).map_err(text)?;
            same_boxes(&found, &plain_objects(&vertices, &offsets))?;
        }
    }
    let few = [[1.0; 3]; 7];
    equal(gpu.objects(&few, &[]).map_err(text)?, Vec::new())?;
    equal(gpu.objects(&few, &[7]).map_err(text)?, Vec::new())?;
    // Some vertices belong to no object, and some objects have no vertices.
    for offsets in [&[7, 7, 7][..], &[0, 0, 0], &[3, 3, 5, 5]] {
        let found = gpu.objects(&few, offsets).map_err(text)?;
        same_boxes(&found, &plain_objects(&few, offsets))?;
    }
    Ok(())
}

/// An object with most vertices between small ones, and objects of exactly the sizes that warps
/// take.
fn one_among_many() -> Result<(), Failed> {
    let gpu = Gpu::new()?;
    let large = sized(3_000_000, 3000) as u32;
    for shift in [0, 1, 31, 32, 256] {
        let mut offsets: Vec<u32> = (0..100).map(|k| shift + 8 * k).collect();
        offsets.push(offsets[99] + large);
        let next = offsets[100];
        offsets.extend((1..40).map(|k| next + 32 * k));
        let n = offsets[offsets.len() - 1] as usize;
        let mut vertices = vertices(&mut Random::new(u64::from(shift)), n, false);
        // All coordinates negative, all positive, or both.
        let moved = [0.0, -20.0, 20.0][shift as usize % 3];
        vertices.iter_mut().flatten().for_each(|x| *x += moved);
        let found = gpu.objects(&vertices, &offsets).map_err(text)?;
        same_boxes(&found, &plain_objects(&vertices, &offsets))?;
    }
    Ok(())
}

fn bad_indices() -> Result<(), Failed> {
    let gpu = Gpu::new()?;
    let vertices = [[0.0; 3]; 10];
    match gpu.triangles(&vertices, &[[0, 1, 9], [0, 10, 11], [12, 0, 0]]) {
        Err(Error::VertexIndex {
            triangle: 1,
            vertex: 10,
            vertices: 10,
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    for (offsets, first) in BAD_OFFSETS {
        match gpu.objects(&vertices, offsets) {
            Err(Error::Offset { index, offset, .. })
                if (index, offset) == (*first, offsets[*first]) => {}
            other => return Err(format!("{offsets:?}: {other:?}").into()),
        }
    }
    let mut room = gpu.stream.alloc::<Aabb>(2).map_err(text)?;
    let offsets = gpu.stream.from_slice(&[0_u32, 0]).map_err(text)?;
    let points = gpu.stream.from_slice(&vertices).map_err(text)?;
    let found = gpu.bounds.aabbs_from_objects(
        &gpu.stream,
        points.slice(),
        offsets.slice(),
        room.slice_mut(),
    );
    match found {
        Err(Error::LengthMismatch {
            what: "objects",
            boxes: 2,
            given: 1,
        }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// From vertices to pairs on the device. The error names the box with a NaN.
fn broken_vertex() -> Result<(), Failed> {
    let mut broad_phase = super::engine(&super::cuda(Strategy::Endpoints));
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let bounds = MeshBounds::new(stream.device()).map_err(text)?;
    let mut boxes = stream.alloc::<Aabb>(2).map_err(text)?;
    let triangles = stream.from_slice(&[[0, 1, 1], [0, 1, 2]]).map_err(text)?;
    let mut update = |last: f32| {
        let vertices = stream.from_slice(&[[0.0; 3], [1.0; 3], [0.0, last, 0.0]])?;
        let (vertices, triangles) = (vertices.slice(), triangles.slice());
        bounds.aabbs_from_mesh(&stream, vertices, triangles, boxes.slice_mut())?;
        Ok(broad_phase.update_device(boxes.slice())?.pairs)
    };
    equal(update(2.0).map_err(|error: Error| text(error))?, 1)?;
    match update(f32::NAN) {
        Err(Error::InvalidAabb {
            index: 1,
            reason: InvalidReason::NanMin { axis: 1 },
        }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
