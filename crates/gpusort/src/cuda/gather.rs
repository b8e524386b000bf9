//! The gather of a record sort (Ha et al. §4.7 and figure 3): the launch of
//! `kernels/sort/gather.cu`.

use super::context::Context;
use crate::Result;
use gpu::{DevicePtr, Kernel, Stream};
use radsweep_kernels as images;

/// The device addresses of records, and the bytes of each record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records {
    pub input: DevicePtr<u8>,
    pub output: DevicePtr<u8>,
    pub bytes: usize,
}

/// Returns the kernel that moves pieces of that many bytes.
pub(super) fn kernel(context: &Context, piece_bytes: u32) -> Result<Kernel> {
    let name = match piece_bytes {
        1 => "gather_1",
        2 => "gather_2",
        4 => "gather_4",
        8 => "gather_8",
        _ => "gather_16",
    };
    context.kernel(&images::GATHER, name, 0)
}

/// Moves `n` records: record i of the output is record `index[i]` of the input. `index` is the
/// address of `n` numbers below `n`, and both record buffers have `n` records.
pub(super) fn launch(
    context: &Context,
    stream: &Stream,
    n: u64,
    index: DevicePtr<u32>,
    records: &Records,
) -> Result<()> {
    context.mark(stream, "gather")?;
    // The largest power of two up to 16 that divides the size and both addresses.
    let addresses = records.input.address() | records.output.address();
    let power = (records.bytes as u64 | addresses | 16).trailing_zeros();
    let pieces = (records.bytes >> power) as u32;
    if pieces == 0 {
        return Ok(()); // records of no size
    }
    let launch = context.streaming_launch(n.saturating_mul(pieces.into()));
    let args = gpu::args![index, records.input, records.output, n, pieces];
    // SAFETY: the request was checked, so both buffers have `n` records; the index was sorted, so
    // it has numbers below `n`; the addresses are aligned for the pieces.
    unsafe { stream.launch(&kernel(context, 1 << power)?, &launch, &args)? };
    Ok(())
}
