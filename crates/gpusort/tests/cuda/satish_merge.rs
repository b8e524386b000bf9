//! Tests of `SatishMerge` on a GPU, and of the merge sorts of keys of many words and of records by
//! an order given as source.

use crate::common::{Distribution, TestKey, by_index};
use crate::gpu_rig::{Form, Gpu, Guarded, Outcome, Rig, Scratch, same, text, unless_quick};
use crate::suite::Suite;
use crate::{each_type, gpu_rig};
use bytemuck::Pod;
use gpusort::cuda::{Comparator, MergeSorter, Payload, Request, Sorter, Words};
use gpusort::{Error, Order};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cmp::Ordering;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "more runs than a pass merges", many_runs);
    suite.add("pieces between splitters are bounded", bounded_pieces);
    suite.add("keys of many words", words);
    suite.add("keys of many words that agree but for the last", late_words);
    suite.add("words: wrong calls are errors", wrong_words);
    match nvrtc() {
        Ok(library) => {
            let trial = move |test: fn(&Gpu, Option<&OsString>) -> Outcome| {
                let library = library.clone();
                move |gpu: &Gpu| test(gpu, library.as_ref())
            };
            suite.add("records by an order given as source", trial(records));
            suite.add("a source that does not compile", trial(bad_sources));
        }
        Err(reason) => {
            suite.ignore("records by an order given as source", reason.clone());
            suite.ignore("a source that does not compile", reason);
        }
    }
    suite.add("no compiler library", no_compiler);
}

fn many_runs<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::U32);
    let spreads = [
        Distribution::UniformBits,
        Distribution::Few(3),
        Distribution::Sorted,
        Distribution::TwoRuns,
        Distribution::SawDown,
    ];
    let sizes = [3 * tile + 1, 8 * tile, 9 * tile - 1, 65 * tile + 77];
    for (i, n) in sizes.into_iter().enumerate() {
        for (j, spread) in spreads.iter().enumerate() {
            let forms = [
                Form::Keys,
                Form::Pairs32,
                Form::Pairs64,
                Form::Index,
                Form::Pairs32InPlace,
            ];
            // In a quick run the types share the distributions.
            if gpu_rig::quick() && (i + j) % 6 != K::TYPE as usize {
                continue;
            }
            let keys = spread.keys::<K>(n, 11);
            let options = &gpu.orders()[(i + j) % 2];
            let forms = unless_quick(&forms[..], &forms[(i + j) % 5..][..1]);
            rig.check(&keys, options, forms)
                .map_err(|failed| format!("{spread:?} {n}: {}", text(&failed)))?;
        }
    }
    Ok(())
}

/// §IV.A: for every arrangement of keys, a block can merge the elements between two splitters.
fn bounded_pieces(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let tile = Sorter::tile_keys::<u32>(gpu.algorithm, Payload::None);
    for (n, passes) in [(9 * tile, 3), (8 * tile, 2), (tile, 1)] {
        for &spread in Distribution::ALL {
            let keys = spread.keys::<u32>(n, 3);
            let input = Guarded::new(&stream, &keys)?;
            let mut output = Guarded::<u32>::poisoned(&stream, n)?;
            let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::None, false)?;
            gpu.sorter.sort(
                &stream,
                Request::keys(input.slice(), output.slice_mut()),
                scratch.slice_mut(),
                &gpu.options(),
            )?;
            let report = gpu.sorter.report(&stream, scratch.slice())?;
            if report.passes_run != passes || report.largest_piece > tile as u64 {
                return Err(format!("{spread:?} {n}: {report:?}").into());
            }
            if (passes > 1) != (report.largest_piece > 0) {
                return Err(format!("{spread:?} {n}: no piece is said: {report:?}").into());
            }
        }
    }
    Ok(())
}

/// Scratch memory of the exact size, poisoned, with a guard behind it.
struct Exact(gpu::Buffer<u8>, usize);

impl Exact {
    fn new(stream: &gpu::Stream, bytes: usize) -> Result<Self, libtest_mimic::Failed> {
        let mut buffer = stream.alloc::<u8>(bytes + 256)?;
        stream.fill_bytes(buffer.slice_mut(), 0xc3)?;
        Ok(Self(buffer, bytes))
    }

    fn slice_mut(&mut self) -> gpu::SliceMut<'_, u8> {
        self.0.range_mut(..self.1).expect("within")
    }

    fn check(&self, stream: &gpu::Stream) -> Outcome {
        let guard = stream.to_vec(self.0.range(self.1..)?)?;
        same("behind the scratch", &guard, &vec![0xc3; guard.len()])
    }
}

/// Returns the stable argsort of `n` keys by a comparison of two places. It is built once for all
/// keys.
fn index_by(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<u32> {
    let mut index: Vec<u32> = (0..n as u32).collect();
    index.sort_by(|&a, &b| compare(a as usize, b as usize));
    index
}

/// Sorts by words, and compares index and keys with a stable sort.
#[inline(never)]
fn check_words<K: Words + Ord + Debug>(gpu: &Gpu, keys: &[K], order: Order) -> Outcome {
    let stream = gpu.stream()?;
    let sorter = MergeSorter::new(stream.device());
    let expected = index_by(keys.len(), &|a, b| {
        let ascending = keys[a].cmp(&keys[b]);
        if order == Order::Descending {
            ascending.reverse()
        } else {
            ascending
        }
    });
    let input = Guarded::new(&stream, keys)?;
    for with_keys in [false, true] {
        let mut output = Guarded::<K>::poisoned(&stream, keys.len())?;
        let mut index = Guarded::<u32>::poisoned(&stream, keys.len())?;
        let bytes = MergeSorter::scratch_bytes::<K>(keys.len() as u64)?;
        let mut scratch = Exact::new(&stream, bytes as usize)?;
        sorter.sort_index(
            &stream,
            input.slice(),
            with_keys.then(|| output.slice_mut()),
            index.slice_mut(),
            scratch.slice_mut(),
            order,
        )?;
        let what = format!("{} words, {} keys", K::WORDS, keys.len());
        same(&what, &index.read(&stream, "index")?, &expected)?;
        if with_keys {
            same(
                &what,
                &output.read(&stream, "keys")?,
                &by_index(keys, &expected),
            )?;
        }
        scratch.check(&stream)?;
    }
    same("input", &input.read(&stream, "input")?, keys)
}

/// Returns keys whose words have `values` values each.
#[inline(never)]
fn words_of<const W: usize, T: Pod + From<u8>>(n: usize, values: u32, seed: u64) -> Vec<[T; W]>
where
    rand::distr::StandardUniform: rand::distr::Distribution<T>,
{
    let mut random = StdRng::seed_from_u64(seed);
    let few = |random: &mut StdRng| T::from(random.random_range(0..values.min(255)) as u8);
    (0..n)
        .map(|_| {
            std::array::from_fn(|_| {
                if values == 0 {
                    random.random()
                } else {
                    few(&mut random)
                }
            })
        })
        .collect()
}

fn words(gpu: &Gpu) -> Outcome {
    let tile = Sorter::tile_keys::<u64>(gpu.algorithm, Payload::U32);
    let orders = [Order::Ascending, Order::Descending];
    let sizes = [0, 1, 2, 1000, tile + 1, unless_quick(70, 3) * tile + 5];
    for (i, n) in sizes.into_iter().enumerate() {
        for (j, values) in [0, 2, 200].into_iter().enumerate() {
            let (order, seed) = (orders[(i + j) % 2], n as u64);
            check_words(gpu, &words_of::<1, u32>(n, values, seed), order)?;
            check_words(gpu, &words_of::<3, u32>(n, values, seed), order)?;
            check_words(gpu, &words_of::<8, u32>(n, values, seed), order)?;
            check_words(gpu, &words_of::<2, u64>(n, values, seed), order)?;
            if i + 1 < sizes.len() {
                check_words(gpu, &words_of::<2, u32>(n, values, seed), order)?;
                check_words(gpu, &words_of::<1, u64>(n, values, seed), order)?;
                check_words(gpu, &words_of::<8, u64>(n, values, seed), order)?;
            }
        }
    }
    Ok(())
}

/// The first 64 bits are equal, or are those that mark the end of the input.
fn late_words(gpu: &Gpu) -> Outcome {
    let n = unless_quick(100_000, 9_000);
    let mut random = StdRng::seed_from_u64(5);
    for first in [0, 7, u32::MAX] {
        let keys: Vec<[u32; 5]> = (0..n)
            .map(|_| [first, first, first, 1, random.random_range(0..n as u32)])
            .collect();
        check_words(gpu, &keys, Order::Ascending)?;
        check_words(gpu, &keys, Order::Descending)?;
    }
    Ok(())
}

fn wrong_words(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let sorter = MergeSorter::new(stream.device());
    let keys = stream.from_slice(&[[1_u32, 2, 3]; 10])?;
    let mut index = stream.alloc::<u32>(10)?;
    let mut scratch = stream.alloc::<u8>(MergeSorter::scratch_bytes::<[u32; 3]>(10)? as usize)?;
    let few = scratch.len() - 1;
    let mut sort = |keys, range: std::ops::Range<usize>, index: &mut gpu::Buffer<u32>, places| {
        let index = index.range_mut(..places)?;
        let scratch = scratch.range_mut(range)?;
        sorter.sort_index::<[u32; 3]>(&stream, keys, None, index, scratch, Order::Ascending)
    };
    let wrong = [
        matches!(
            sort(keys.slice(), 0..few, &mut index, 10),
            Err(Error::ScratchTooSmall { .. })
        ),
        matches!(
            sort(keys.slice(), 4..few, &mut index, 10),
            Err(Error::Misaligned { .. })
        ),
        matches!(
            sort(keys.slice(), 0..few, &mut index, 9),
            Err(Error::LengthMismatch { .. })
        ),
        matches!(
            MergeSorter::scratch_bytes::<[u64; 2]>(1 << 32),
            Err(Error::TooManyKeys { .. })
        ),
    ];
    same("errors", &wrong.map(u8::from), &[1; 4])
}

/// Returns the compiler library: `None` for the system's, else the path of the stand-in, if it can
/// be built.
fn nvrtc() -> Result<Option<OsString>, String> {
    let nvcc =
        std::env::var_os("RADSWEEP_EMULATE_NVCC").filter(|path| PathBuf::from(path).is_file());
    if nvcc.is_none() {
        return Ok(None); // without one the trial fails and says so
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in/nvrtc.rs");
    let library = std::env::temp_dir().join(format!("libnvrtc-stand-in-{}.so", std::process::id()));
    let built = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=nvrtc",
            source,
            "-o",
        ])
        .arg(&library)
        .output()
        .map_err(|error| format!("no NVRTC, and no rustc for a stand-in: {error}"))?;
    if built.status.success() {
        Ok(Some(library.into()))
    } else {
        Err(String::from_utf8_lossy(&built.stderr).into_owned())
    }
}

fn compile<R: Pod>(
    device: &gpu::Device,
    source: &str,
    library: Option<&std::ffi::OsStr>,
) -> gpusort::Result<Comparator<R>> {
    // SAFETY: the sources of these tests only read their arguments.
    unsafe { Comparator::compile_with(device, source, library) }
}

fn check_records<R: Pod + PartialEq + Debug + Sync>(
    gpu: &Gpu,
    comparator: &Comparator<R>,
    records: &[R],
    compare: impl Fn(&R, &R) -> Ordering,
) -> Outcome {
    let stream = gpu.stream()?;
    let expected = index_by(records.len(), &|a, b| compare(&records[a], &records[b]));
    let input = Guarded::new(&stream, records)?;
    let mut output = Guarded::<R>::poisoned(&stream, records.len())?;
    let mut index = Guarded::<u32>::poisoned(&stream, records.len())?;
    let bytes = comparator.scratch_bytes(records.len() as u64)? as usize;
    let mut scratch = Exact::new(&stream, bytes)?;
    comparator.sort_index(
        &stream,
        input.slice(),
        index.slice_mut(),
        scratch.slice_mut(),
    )?;
    comparator.sort_records(
        &stream,
        input.slice(),
        output.slice_mut(),
        scratch.slice_mut(),
    )?;
    let what = format!("{} records of {} bytes", records.len(), size_of::<R>());
    same(&what, &index.read(&stream, "index")?, &expected)?;
    let sorted = by_index(records, &expected);
    same(
        &what,
        bytemuck::cast_slice::<R, u8>(&output.read(&stream, "records")?),
        bytemuck::cast_slice(&sorted),
    )?;
    scratch.check(&stream)
}

fn records(gpu: &Gpu, library: Option<&OsString>) -> Outcome {
    let device = gpu.stream()?.device().clone();
    let library = library.map(OsString::as_os_str);
    let mut random = StdRng::seed_from_u64(9);
    let by_float = compile::<[u32; 2]>(
        &device,
        "struct Item { float a; unsigned b; };\n__device__ bool less(const Item& x, const Item& y) { return x.a < y.a; }",
        library,
    )?;
    let by_distance = compile::<[i32; 3]>(
        &device,
        "struct Item { int x, y, z; };
         __device__ int far(const Item& i) { return i.x * i.x + i.y * i.y + i.z * i.z; }
         __device__ bool less(const Item& a, const Item& b) { return far(a) > far(b); }",
        library,
    )?;
    let by_byte = compile::<[u8; 50]>(
        &device,
        "struct Item { unsigned char all[50]; };
         __device__ bool less(const Item& a, const Item& b) { return a.all[49] < b.all[49]; }",
        library,
    )?;
    for n in [0, 1, 33, 4_000, unless_quick(600_000, 12_000)] {
        let floats: Vec<[u32; 2]> = (0..n)
            .map(|i| {
                [
                    (random.random_range(-99..99) as f32 / 8.0).to_bits(),
                    i as u32,
                ]
            })
            .collect();
        check_records(gpu, &by_float, &floats, |a, b| {
            f32::from_bits(a[0]).total_cmp(&f32::from_bits(b[0]))
        })?;
        let points: Vec<[i32; 3]> = (0..n)
            .map(|_| std::array::from_fn(|_| random.random_range(-9..9)))
            .collect();
        let far = |p: &[i32; 3]| p.iter().map(|x| x * x).sum::<i32>();
        check_records(gpu, &by_distance, &points, |a, b| far(b).cmp(&far(a)))?;
        let blobs: Vec<[u8; 50]> = (0..n.min(50_000))
            .map(|_| std::array::from_fn(|_| random.random()))
            .collect();
        check_records(gpu, &by_byte, &blobs, |a, b| a[49].cmp(&b[49]))?;
    }
    Ok(())
}

fn bad_sources(gpu: &Gpu, library: Option<&OsString>) -> Outcome {
    let device = gpu.stream()?.device().clone();
    let library = library.map(OsString::as_os_str);
    let error = |source| compile::<[u32; 2]>(&device, source, library).err();
    let wrong_name = error(
        "struct Item { int a, b; };\n__device__ bool less(const Item& x, const Item& y) { return x.c < y.c; }",
    );
    let other_size = error(
        "struct Item { int a; }; __device__ bool less(const Item& x, const Item& y) { return x.a < y.a; }",
    );
    match (&wrong_name, &other_size) {
        (Some(Error::BadComparator { log }), Some(Error::BadComparator { log: size }))
            if log.contains("comparator.cu") && size.contains("another size") =>
        {
            Ok(())
        }
        _ => Err(format!("{wrong_name:?} {other_size:?}").into()),
    }
}

fn no_compiler(gpu: &Gpu) -> Outcome {
    let device = gpu.stream()?.device().clone();
    let missing = OsString::from("/nowhere/libnvrtc.so");
    match compile::<u32>(&device, "", Some(&missing)) {
        Err(Error::NoCompiler { looked_for, .. }) if looked_for == "/nowhere/libnvrtc.so" => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
