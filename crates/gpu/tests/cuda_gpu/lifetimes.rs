//! Tests that memory outlives its work, across graphs, streams and threads.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{add, kernel, numbers, spin};
use gpu::{Buffer, Device, Error, Layout, Stream};

const N: usize = 1000;

/// Allocates buffers with known contents, which would take freed memory.
fn bystanders(stream: &Stream) -> Vec<Buffer<u32>> {
    let new = |i| stream.from_slice(&[i; N]).unwrap();
    (0..8).map(new).collect()
}

fn untouched(stream: &Stream, buffers: &[Buffer<u32>]) {
    for (i, buffer) in (0..).zip(buffers) {
        assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [i; N]);
    }
}

/// A graph keeps the buffers that it fills, copies and passes to kernels, if they are dropped after
/// the capture.
pub fn graphs_keep_their_buffers(device: &Device) {
    let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let add_all = kernel(device, "add_all");
    let new = || stream.alloc_zeroed::<u32>(N).unwrap();
    let mut out = new();
    let (mut filled, mut bytes, mut added, mut copied) = (new(), new(), new(), new());
    let graph = stream
        .capture(|stream| {
            stream.fill_u32(filled.slice_mut(), 100)?;
            stream.fill_bytes(bytes.slice_mut(), 1)?;
            add(stream, &add_all, added.slice_mut(), 1)?;
            stream.copy(copied.slice_mut(), added.slice())?;
            stream.copy(out.slice_mut(), copied.slice())
        })
        .unwrap();
    drop((filled, bytes, added, copied));
    let others = bystanders(&stream);
    for run in 1..=3 {
        let on = if run == 2 { &other } else { &stream };
        graph.launch(on).unwrap();
        on.synchronize().unwrap();
        assert_eq!(stream.to_vec(out.slice()).unwrap(), [run; N]);
    }
    graph.launch(&other).unwrap();
    drop(graph);
    untouched(&stream, &others);
}

/// Memory is freed on its own stream only after another stream's work that uses it.
pub fn freed_after_other_streams(device: &Device) {
    let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let busy = kernel(device, "spin");
    let mut buffer = stream.alloc_zeroed::<u32>(N).unwrap();
    stream.synchronize().unwrap();
    spin(&other, &busy, 30);
    other.fill_u32(buffer.slice_mut(), 99).unwrap();
    drop(buffer);
    let others = bystanders(&stream);
    other.synchronize().unwrap();
    untouched(&stream, &others);
}

/// Another stream uses memory only after the work that used the same memory before its allocation.
pub fn allocated_before_other_streams(device: &Device) {
    let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let busy = kernel(device, "spin");
    let mut before = stream.alloc_zeroed::<u32>(N).unwrap();
    stream.synchronize().unwrap();
    spin(&stream, &busy, 30);
    stream.fill_u32(before.slice_mut(), 99).unwrap();
    drop(before);
    // It has the same memory, most likely.
    let mut after = stream.alloc::<u32>(N).unwrap();
    other.fill_u32(after.slice_mut(), 7).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(other.to_vec(after.slice()).unwrap(), [7; N]);
}

/// Threads use a stream while another captures it. Each call is done or refused, and none becomes
/// part of the graph.
pub fn captures_beside_other_threads(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let add_all = kernel(device, "add_all");
    let ended = AtomicBool::new(false);
    let work = |i: u32| {
        let expected = numbers(N);
        while !ended.load(Ordering::Relaxed) {
            let step = || {
                let mut buffer = stream.from_slice(&expected)?;
                assert_eq!(stream.to_vec(buffer.slice())?, expected);
                add(&stream, &add_all, buffer.slice_mut(), i)?;
                let mut twin = stream.alloc(N)?;
                stream.copy(twin.slice_mut(), buffer.slice())?;
                stream.fill_u32(buffer.slice_mut(), i)?;
                drop(buffer);
                let sums = stream.to_vec(twin.slice())?;
                assert!(
                    expected
                        .iter()
                        .zip(sums)
                        .all(|(a, b)| a.wrapping_add(i) == b)
                );
                Ok(())
            };
            match step() {
                Ok(()) | Err(Error::Capturing { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let _ended = Sets(&ended);
        for i in 0..3 {
            let work = &work;
            scope.spawn(move || work(i));
        }
        let mut filled = Stream::new(device).unwrap().alloc_zeroed::<u32>(N).unwrap();
        for value in 0..200 {
            let graph = stream.capture(|stream| stream.fill_u32(filled.slice_mut(), value));
            graph.unwrap().launch(&stream).unwrap();
            let own = filled.stream().clone();
            own.wait(&stream.record().unwrap()).unwrap();
            assert_eq!(own.to_vec(filled.slice()).unwrap(), [value; N]);
            std::thread::yield_now();
        }
    });
}

/// Sets the flag when dropped, also in a panic, so that no thread waits forever.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A measured region has no memory, at any address.
pub fn measured_regions_are_refused(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let buffer = stream.from_slice(&[5u8; N]).unwrap();
    let all = Layout::measure().take::<u8>(isize::MAX as usize - 255);
    let at = buffer.ptr() as usize;
    let region = all.unwrap().range(at..at + N).unwrap();
    assert_eq!(stream.fill_bytes(region, 1), Err(Error::Measured));
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [5; N]);
}
