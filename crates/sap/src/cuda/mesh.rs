//! Boxes of meshes on the device (`kernels/sap/bounds.cuh`).

use crate::cuda::launch::{THREADS, WARP, linear, module};
use crate::cuda::tuning::{MESH_SHARE, MESH_WARPS};
use crate::mesh::{invalid_offset, invalid_triangle};
use crate::{Aabb, Error, Result};
use gpu::{Buffer, Device, Kernel, Launch, Slice, SliceMut, Stream, args, blocks};

/// The kernels that compute the boxes of meshes on a CUDA device:
/// [`aabbs_from_mesh`](crate::aabbs_from_mesh) and
/// [`aabbs_from_objects`](crate::aabbs_from_objects) there, with the same results bit for bit. The
/// boxes may go to [`BroadPhase::update_device`](crate::BroadPhase::update_device).
///
/// ```
/// use sap::{Aabb, MeshBounds};
///
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let bounds = MeshBounds::new(&device)?;
/// let vertices = stream.from_slice(&[[0.0; 3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])?;
/// let triangles = stream.from_slice(&[[0, 1, 2]])?;
/// let mut boxes = stream.alloc::<Aabb>(1)?;
/// bounds.aabbs_from_mesh(&stream, vertices.slice(), triangles.slice(), boxes.slice_mut())?;
/// assert_eq!(stream.to_vec(boxes.slice())?, [Aabb::new([0.0; 3], [1.0, 2.0, 0.0])]);
/// # Ok::<(), sap::Error>(())
/// ```
pub struct MeshBounds {
    triangles: Kernel,
    start: Kernel,
    objects: Kernel,
}

impl MeshBounds {
    /// Loads the kernels on a device.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the device cannot load them.
    pub fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            triangles: module.kernel("sap_bounds_triangles")?,
            start: module.kernel("sap_bounds_start")?,
            objects: module.kernel("sap_bounds_objects")?,
        })
    }

    /// Writes the box of each triangle at its index in `boxes`, on `stream`, and waits for it.
    /// Bytes: 48 read and 24 written a triangle.
    ///
    /// # Errors
    ///
    /// [`Error::VertexIndex`] as [`aabbs_from_mesh`](crate::aabbs_from_mesh), with anything in
    /// `boxes`; [`Error::LengthMismatch`] unless there is a box for each triangle;
    /// [`Error::TooManyBoxes`] above `u32::MAX`; [`Error::Gpu`].
    pub fn aabbs_from_mesh(
        &self,
        stream: &Stream,
        vertices: Slice<'_, [f32; 3]>,
        triangles: Slice<'_, [u32; 3]>,
        boxes: SliceMut<'_, Aabb>,
    ) -> Result<()> {
        let n = triangles.len();
        let count = checked_count("triangles", n, boxes.len())?;
        if n == 0 {
            return Ok(());
        }
        let invalid = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: there is a box for each triangle, and the kernel checks the indices of vertices.
        unsafe {
            stream.launch(
                &self.triangles,
                &linear(n),
                &args![
                    vertices,
                    vertices.len() as u64,
                    triangles,
                    count,
                    boxes,
                    invalid.slice()
                ],
            )?
        };
        match first_invalid(stream, &invalid)? {
            None => Ok(()),
            Some(triangle) => {
                let corners = stream.to_vec(triangles.range(triangle..=triangle)?)?[0];
                Err(invalid_triangle(triangle, corners, vertices.len()))
            }
        }
    }

    /// Writes the box of each object at its index in `boxes`, on `stream`, and waits for it. Warps
    /// take equal shares of the vertices, however many an object has. Bytes: 12 read a vertex; 8
    /// read and 48 written an object.
    ///
    /// # Errors
    ///
    /// [`Error::Offset`] as [`aabbs_from_objects`](crate::aabbs_from_objects), with anything in
    /// `boxes`; [`Error::LengthMismatch`] unless there is a box for each object;
    /// [`Error::TooManyBoxes`] above `u32::MAX`; [`Error::Gpu`].
    pub fn aabbs_from_objects(
        &self,
        stream: &Stream,
        vertices: Slice<'_, [f32; 3]>,
        offsets: Slice<'_, u32>,
        mut boxes: SliceMut<'_, Aabb>,
    ) -> Result<()> {
        let n = offsets.len().saturating_sub(1);
        let count = checked_count("objects", n, boxes.len())?;
        if n == 0 {
            return Ok(());
        }
        let invalid = stream.alloc_zeroed::<u64>(1)?;
        // Offsets of 32 bits reach no vertex beyond these.
        let reached = vertices.len().min(u32::MAX as usize);
        let warps = stream.device().info().multiprocessors as usize * MESH_WARPS;
        let share = reached
            .div_ceil(warps)
            .next_multiple_of(WARP as usize)
            .max(MESH_SHARE);
        let launch = Launch::linear(
            blocks(reached.div_ceil(share).max(1), THREADS / WARP),
            THREADS,
        );
        // SAFETY: there is a box for each object and an offset more. The second kernel does nothing
        // unless the first found all offsets in order and within the vertices.
        unsafe {
            stream.launch(
                &self.start,
                &linear(n),
                &args![
                    offsets,
                    count,
                    vertices.len() as u64,
                    boxes.reborrow(),
                    invalid.slice()
                ],
            )?;
            stream.launch(
                &self.objects,
                &launch,
                &args![
                    vertices,
                    offsets,
                    count,
                    share as u64,
                    boxes,
                    invalid.slice()
                ],
            )?;
        }
        match first_invalid(stream, &invalid)? {
            None => Ok(()),
            Some(index) => {
                let offset = stream.to_vec(offsets.range(index..=index)?)?[0];
                Err(invalid_offset(index, offset, vertices.len()))
            }
        }
    }
}

/// Returns the number of triangles or objects, if there is a box for each.
fn checked_count(what: &'static str, given: usize, boxes: usize) -> Result<u32> {
    if given != boxes {
        return Err(Error::LengthMismatch { what, boxes, given });
    }
    u32::try_from(boxes).map_err(|_| Error::TooManyBoxes {
        boxes: boxes as u64,
        limit: u32::MAX.into(),
    })
}

/// Waits for the stream and reads what `report_invalid` left.
fn first_invalid(stream: &Stream, invalid: &Buffer<u64>) -> Result<Option<usize>> {
    let code = stream.to_vec(invalid.slice())?[0];
    Ok((code != 0).then_some(!code as usize))
}
