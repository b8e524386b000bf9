//! The trials that every family of sorts must pass on a GPU: every form, type and order, and the
//! edge cases of other sorts' test suites and users.
//!
//! [`run`] runs the common trials of each family, and then its own.

use crate::common::{
    Distribution, TestKey, around, by_index, scrambled, special_f32, special_f64, sprinkled,
};
use crate::data;
use crate::gpu_rig::{
    Form, Gpu, Guarded, Outcome, Rig, Scratch, quick, reference, same, text, unless_quick,
};
use gpu::Stream;
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, Error, SortOptions};
use libtest_mimic::{Arguments, Failed, Trial};
use rayon::prelude::*;

/// A family of sorts with its trials.
pub struct Family {
    name: &'static str,
    /// The algorithm of the common trials.
    algorithm: Algorithm,
    /// Whether they have the hint of nearly sorted input.
    nearly_sorted: bool,
    /// Adds the family's own trials.
    add: fn(&mut Suite),
}

impl Family {
    pub fn new(name: &'static str, algorithm: Algorithm, add: fn(&mut Suite)) -> Self {
        Self {
            name,
            algorithm,
            nearly_sorted: false,
            add,
        }
    }

    pub fn nearly_sorted(self) -> Self {
        Self {
            nearly_sorted: true,
            ..self
        }
    }
}

/// Runs the common trials and the own ones of each family, or of the one that `RADSWEEP_SORTS`
/// names.
pub fn run(families: &[Family]) {
    let only = std::env::var("RADSWEEP_SORTS").unwrap_or_default();
    let mut trials = Vec::new();
    for family in families {
        if !only.is_empty() && only != family.name {
            continue;
        }
        let gpu = Gpu::open(family.algorithm, family.nearly_sorted);
        if let Err(reason) = &gpu {
            eprintln!("no CUDA device: {reason}");
            if std::env::var_os("RADSWEEP_REQUIRE_CUDA").is_some_and(|value| value == "1") {
                std::process::exit(1);
            }
        }
        let mut suite = Suite {
            family: family.name,
            gpu,
            trials,
        };
        suite.common();
        (family.add)(&mut suite);
        trials = suite.trials;
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A list of trials. Without a device they are ignored, with the reason as their kind.
pub struct Suite {
    family: &'static str,
    pub gpu: Result<Gpu, String>,
    trials: Vec<Trial>,
}

/// Adds `$test::<K>` for each key type, named after the type.
#[macro_export]
macro_rules! each_type {
    ($suite:ident, $name:literal, $test:ident) => {
        $crate::each_type!($suite, $name, $test, u32 i32 f32 u64 i64 f64)
    };
    ($suite:ident, $name:literal, $test:ident, $($key:ident)*) => {
        $($suite.add(concat!($name, ": ", stringify!($key)), $test::<$key>);)*
    };
}

impl Suite {
    /// Adds a trial.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        test: impl Fn(&Gpu) -> Outcome + Send + 'static,
    ) {
        self.add_boxed(name.into(), Box::new(test));
    }

    /// The same, built once for all tests.
    fn add_boxed(&mut self, name: String, test: Box<dyn Fn(&Gpu) -> Outcome + Send>) {
        match &self.gpu {
            Ok(gpu) => {
                let name = format!("{}/{name}", self.family);
                let gpu = gpu.clone();
                self.trials.push(Trial::test(name, move || test(&gpu)));
            }
            Err(reason) => {
                let reason = format!("no CUDA device: {reason}");
                self.ignore(&name, reason);
            }
        }
    }

    /// Adds a trial that cannot run here, with the reason.
    pub fn ignore(&mut self, name: &str, reason: String) {
        let name = format!("{}/{name}", self.family);
        let trial = Trial::test(name, || Ok(())).with_kind(reason);
        self.trials.push(trial.with_ignored_flag(true));
    }

    /// Adds the trial of [`many_keys`], or ignores it if the device lacks the memory.
    pub fn add_many_keys(&mut self, name: &str, n: usize) {
        let gpu = self.gpu.as_ref().ok();
        let free = gpu
            .and_then(|gpu| gpu.device.memory().ok())
            .map_or(0, |memory| memory.0);
        let needed = 14 * n as u64;
        if gpu.is_some() && free < needed {
            self.ignore(
                name,
                format!("{needed} bytes of device memory needed, {free} free"),
            );
        } else {
            self.add(name, move |gpu| many_keys(gpu, n));
        }
    }

    fn common(&mut self) {
        let suite = self;
        each_type!(suite, "every n below 1024", every_small_n);
        each_type!(suite, "n around the tile", around_the_tile);
        for part in 0..TILE_PARTS {
            suite.add(
                format!("every n from tile to 2 tiles + 1, u32 pairs: part {part}"),
                move |gpu| every_n_of_two_tiles(gpu, part),
            );
        }
        each_type!(suite, "distributions", distributions);
        each_type!(suite, "powers of two and their neighbours", powers_of_two);
        each_type!(suite, "keys equal to the padding", padding_keys);
        each_type!(suite, "bit windows", bit_windows);
        suite.add("zeros, infinities, denormals and NaNs: f32", |gpu| {
            special(gpu, &special_f32())
        });
        suite.add("zeros, infinities, denormals and NaNs: f64", |gpu| {
            special(gpu, &special_f64())
        });
        suite.add(
            "zeros of both signs are in order and keep their places",
            zeros,
        );
        suite.add("all NaN with a partial tile", all_nan);
        suite.add(
            "descending floats are the reverse order of equal classes",
            descending_floats,
        );
        suite.add("stable over 2 million keys of few values", stability);
        suite.add("a part of an array is sorted, the rest stays", sub_range);
        suite.add("two sorters on two streams at once", two_streams);
        suite.add("one sorter from many threads", many_threads);
        suite.add("graph capture and replay", graph_replay);
        suite.add("the same bits twice", same_bits_twice);
        suite.add("2^26 keys and pairs", |gpu| {
            large(gpu, unless_quick(1 << 26, 1 << 14))
        });
        if !quick() {
            suite.add("2^28 keys", |gpu| many_keys(gpu, (1 << 28) + 1));
        }
        suite.add_files();
    }

    /// Adds the trials of the published arrays, whose results are checked by hashes.
    fn add_files(&mut self) {
        let Some(folder) = data::folder() else {
            return self.ignore("data", data::NO_FOLDER.to_owned());
        };
        match data::key_files(&folder) {
            Ok(files) => {
                for file in files {
                    // Under a tool that slows the device down a hundred times, only small arrays
                    // are sorted.
                    if quick() && file.n > 40_000 {
                        continue;
                    }
                    let path = folder.join(&file.file);
                    self.add(format!("data: {}", file.file), move |gpu| {
                        published(gpu, &file, &path)
                    });
                }
            }
            Err(reason) => self.add("data", move |_| Err(reason.clone().into())),
        }
    }
}

const TILE_PARTS: usize = 8;

pub fn every_small_n<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let all: Vec<usize> = unless_quick((0..1024).collect(), vec![0, 1, 2, 33, 257, 1023]);
    for n in all {
        // First the full range, then few values, so that every size has equal keys.
        let spread = if n % 2 == 0 {
            Distribution::UniformBits
        } else {
            Distribution::Few(3)
        };
        rig.check_all(&spread.keys::<K>(n, n as u64), &gpu.orders()[n / 2 % 2])?;
    }
    Ok(())
}

pub fn around_the_tile<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for (payload, forms) in [
        (Payload::None, &[Form::Keys, Form::KeysInPlace][..]),
        (
            Payload::U32,
            &[
                Form::Pairs32,
                Form::Pairs32InPlace,
                Form::Index,
                Form::IndexAndKeys,
                Form::Records12,
            ],
        ),
        (Payload::U64, &[Form::Pairs64, Form::Pairs64InPlace]),
    ] {
        let tile = Sorter::tile_keys::<K>(gpu.algorithm, payload);
        let mut sizes = around(unless_quick(
            &[tile, 2 * tile, 3 * tile, 9 * tile][..],
            &[tile][..],
        ));
        sizes.extend(unless_quick(
            &[tile + 31, tile + 32, tile + 33, tile + tile / 2, tile - 383][..],
            &[2 * tile + tile / 2][..],
        ));
        for (i, n) in sizes.into_iter().enumerate() {
            rig.check(
                &Distribution::UniformBits.keys::<K>(n, 1),
                &gpu.orders()[i % 2],
                forms,
            )?;
        }
    }
    Ok(())
}

pub fn every_n_of_two_tiles(gpu: &Gpu, part: usize) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let tile = Sorter::tile_keys::<u32>(gpu.algorithm, Payload::U32);
    let step = TILE_PARTS * unless_quick(1, 400);
    let keys = Distribution::UniformBits.keys::<u32>(2 * tile + 1, part as u64);
    for n in (tile + part..=2 * tile + 1).step_by(step) {
        rig.check(&keys[..n], &gpu.options(), &[Form::Pairs32])?;
    }
    Ok(())
}

pub fn distributions<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    all_distributions::<K>(gpu, &rig, unless_quick(50_000, 7_700), Form::ALL)
}

pub fn all_distributions<K: TestKey>(
    gpu: &Gpu,
    rig: &Rig<'_>,
    n: usize,
    forms: &[Form],
) -> Outcome {
    for (i, &spread) in Distribution::ALL.iter().enumerate() {
        // In a quick run the types share the distributions.
        if quick() && i % 6 != K::TYPE as usize {
            continue;
        }
        // In a quick run each distribution takes one form, and the next distribution the next form.
        let forms = unless_quick(forms, &forms[i % forms.len()..][..1]);
        // Likewise one order.
        for options in unless_quick(&gpu.orders()[..], &gpu.orders()[i / 2 % 2..][..1]) {
            rig.check(&spread.keys::<K>(n, 2), options, forms)
                .map_err(|failed| format!("{spread:?}: {}", text(&failed)))?;
        }
    }
    Ok(())
}

pub fn powers_of_two<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let powers: Vec<usize> = (10..=unless_quick(22, 11))
        .step_by(2)
        .map(|power| 1 << power)
        .collect();
    for (i, n) in around(&powers).into_iter().enumerate() {
        let forms = [Form::Keys, Form::Pairs32, Form::Index];
        rig.check(
            &Distribution::UniformBits.keys::<K>(n, 3),
            &gpu.orders()[i % 2],
            &forms,
        )?;
    }
    Ok(())
}

pub fn padding_keys<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::U32);
    for n in unless_quick(
        &[5, 1000, tile - 1, tile + 1, 2 * tile - 1, 100_000][..],
        &[tile + 1][..],
    )
    .iter()
    .copied()
    {
        for options in &gpu.orders()[..unless_quick(2, 1)] {
            let patterns = [
                u64::MAX,
                0,
                u64::MAX >> 1,
                !(u64::MAX >> 1),
                u64::from(u32::MAX >> 1),
            ];
            for &pattern in &patterns[..unless_quick(5, 2)] {
                let forms = [Form::Index, Form::Pairs64, Form::Keys];
                let forms = &forms[..unless_quick(3, 1)];
                rig.check(&vec![K::from_raw(pattern); n], options, forms)?;
                // Alone the keys are in order already. With one other key in front or behind they
                // are out of order in one of the two orders.
                for at in [0, n / 2, n - 1] {
                    let mut keys = vec![K::from_raw(pattern); n];
                    keys[at] = K::from_raw(0x0123_4567_0123_4567);
                    rig.check(&keys, options, forms)?;
                }
            }
            rig.check_all(&Distribution::Extremes.keys::<K>(n, 4), options)?;
        }
    }
    Ok(())
}

pub fn bit_windows<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let b = K::BITS;
    let windows = [
        0..b,
        0..0,
        b..b,
        b / 3..3 * b / 4,
        0..8,
        0..16,
        0..24,
        5..13,
        7..8,
        b - 3..b,
        b - 9..b,
        1..b,
        30..b,
    ];
    for (i, window) in windows.into_iter().enumerate() {
        let spreads = [Distribution::UniformBits, Distribution::Few(5)];
        for spread in &spreads[unless_quick(0, i % 2)..][..unless_quick(2, 1)] {
            let keys = spread.keys::<K>(unless_quick(20_000, 7_000), 5);
            let options = gpu.orders()[i % 2].clone().bits(window.clone());
            let forms = unless_quick(Form::ALL, &[Form::Pairs32, Form::KeysInPlace]);
            rig.check(&keys, &options, forms)?;
        }
    }
    Ok(())
}

pub fn special<K: TestKey>(gpu: &Gpu, special: &[K]) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for n in [
        22,
        300,
        unless_quick(9_000, 5_000),
        unless_quick(100_000, 1_000),
    ] {
        for options in gpu.orders() {
            rig.check_all(&sprinkled(special, n, 5), &options)?;
        }
    }
    Ok(())
}

pub fn zeros(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let zeros: Vec<f32> = (0..9_000)
        .map(|i| if i % 3 == 0 { 0.0 } else { -0.0 })
        .collect();
    let mut many: Vec<f32> = Distribution::Uniform.keys(20_000, 1);
    (0..20_000)
        .step_by(77)
        .for_each(|i| many[i] = if i % 2 == 0 { 0.0 } else { -0.0 });
    for options in gpu.orders() {
        rig.check_all(&zeros, &options)?;
        rig.check_all(&many, &options)?;
        let mut scratch = Scratch::new::<f32>(&stream, gpu.algorithm, 0, Payload::None, false)?;
        let keys = Guarded::new(&stream, &zeros)?;
        if !gpu
            .sorter
            .is_sorted(&stream, keys.slice(), scratch.slice_mut(), &options)?
        {
            return Err("zeros of both signs are said to be out of order".into());
        }
    }
    Ok(())
}

pub fn all_nan(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let n = Sorter::tile_keys::<f32>(gpu.algorithm, Payload::U32) + 100;
    for options in gpu.orders() {
        for pattern in [0x7fc0_0000_u32, 0xffff_ffff, 0x7f80_0001, 0x7fff_ffff] {
            rig.check_all(&vec![f32::from_bits(pattern); n], &options)?;
        }
        let any: Vec<f32> = (0..n as u32)
            .map(|i| f32::from_bits((0x7f80_0001 + i * 77) | ((i & 1) << 31)))
            .collect();
        rig.check_all(&any, &options)?;
    }
    Ok(())
}

pub fn descending_floats(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for n in [10, 511, 7_681, unless_quick(300_000, 8_000)] {
        rig.check_all(
            &Distribution::Gaussian.keys::<f32>(n, 8),
            &gpu.options().descending(),
        )?;
        rig.check_all(
            &Distribution::Gaussian.keys::<f64>(n, 8),
            &gpu.options().descending(),
        )?;
    }
    Ok(())
}

pub fn stability(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let n = unless_quick(2_000_003, 20_003);
    for values in [2, 7, 128] {
        for options in gpu.orders() {
            rig.check(
                &Distribution::Few(values).keys::<u32>(n, 9),
                &options,
                &[Form::Pairs32, Form::Index],
            )?;
            rig.check(
                &Distribution::Few(values).keys::<f64>(n, 9),
                &options,
                &[Form::Pairs64],
            )?;
        }
    }
    Ok(())
}

pub fn sub_range(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let n = 30_000;
    let keys = Distribution::UniformBits.keys::<i32>(n, 10);
    let values: Vec<u64> = (0..n as u64).collect();
    for part in [0..n, 1..n - 1, 777..20_001, 5..5, n - 1..n] {
        let (mut k, mut v) = (stream.from_slice(&keys)?, stream.from_slice(&values)?);
        let mut scratch =
            Scratch::new::<i32>(&stream, gpu.algorithm, part.len(), Payload::U64, false)?;
        let (ks, vs) = (k.range_mut(part.clone())?, v.range_mut(part.clone())?);
        gpu.sorter.sort(
            &stream,
            Request::in_place(ks).values_in_place(vs),
            scratch.slice_mut(),
            &gpu.options(),
        )?;
        let (mut expected_keys, mut expected_values) = (keys.clone(), values.clone());
        let index = reference(&keys[part.clone()], &gpu.options());
        expected_keys[part.clone()].copy_from_slice(&by_index(&keys[part.clone()], &index));
        expected_values[part.clone()].copy_from_slice(&by_index(&values[part.clone()], &index));
        same("keys", &stream.to_vec(k.slice())?, &expected_keys)
            .map_err(|f| format!("{part:?}: {}", text(&f)))?;
        same("values", &stream.to_vec(v.slice())?, &expected_values)
            .map_err(|f| format!("{part:?}: {}", text(&f)))?;
    }
    Ok(())
}

/// Fails unless the result is the error of the pattern.
#[macro_export]
macro_rules! expect_error {
    ($result:expr, $error:pat) => {
        match $result {
            Err($error) => {}
            other => {
                return Err(
                    format!("line {}: {other:?}, not {}", line!(), stringify!($error)).into(),
                )
            }
        }
    };
}

pub fn two_streams(gpu: &Gpu) -> Outcome {
    let n = unless_quick(3_000_000, 9_000);
    let other = Sorter::new(&gpu.device, SorterConfig::default())?;
    let keys = [
        Distribution::UniformBits.keys::<u32>(n, 12),
        Distribution::Zipf.keys::<u32>(n, 13),
    ];
    let streams = [gpu.stream()?, gpu.stream()?];
    let options = gpu.options();
    let mut sorts = Vec::new();
    for (keys, stream) in keys.iter().zip(&streams) {
        let scratch = Scratch::new::<u32>(stream, gpu.algorithm, n, Payload::Index, false)?;
        sorts.push((stream.from_slice(keys)?, stream.alloc::<u32>(n)?, scratch));
    }
    for _ in 0..unless_quick(20, 2) {
        for (i, (input, index, scratch)) in sorts.iter_mut().enumerate() {
            let sorter = if i == 0 { &gpu.sorter } else { &other };
            sorter.sort(
                &streams[i],
                Request::index(input.slice(), index.slice_mut()),
                scratch.slice_mut(),
                &options,
            )?;
        }
    }
    for (i, (_, index, _)) in sorts.iter().enumerate() {
        same(
            "index",
            &streams[i].to_vec(index.slice())?,
            &reference(&keys[i], &options),
        )?;
    }
    Ok(())
}

pub fn many_threads(gpu: &Gpu) -> Outcome {
    let sorter = Sorter::new(&gpu.device, SorterConfig::default())?;
    let run = |seed: u64| -> Result<(), String> {
        let stream = Stream::new(&gpu.device).map_err(|error| error.to_string())?;
        let rig = Rig::new(&sorter, &stream);
        let keys = Distribution::UniformBits.keys::<f32>(10_000, seed);
        rig.check(&keys, &gpu.options(), &[Form::Pairs32])
            .map_err(|failed| text(&failed))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || run(seed))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("panicked".into())))
    })?;
    Ok(())
}

pub fn graph_replay(gpu: &Gpu) -> Outcome {
    let (stream, n, options) = (gpu.stream()?, unless_quick(100_000, 8_000), gpu.options());
    gpu.sorter.prepare::<f32>(gpu.algorithm, n as u64)?;
    let mut input = stream.alloc::<f32>(n)?;
    let (mut output, mut index) = (stream.alloc::<f32>(n)?, stream.alloc::<u32>(n)?);
    let mut scratch = Scratch::new::<f32>(&stream, gpu.algorithm, n, Payload::Index, false)?;
    let graph = stream.capture(|stream| {
        let request = Request::index(input.slice(), index.slice_mut()).keys_out(output.slice_mut());
        let sorted = gpu
            .sorter
            .sort(stream, request, scratch.slice_mut(), &options);
        sorted.map_err(|error| match error {
            Error::Gpu(error) => error,
            other => panic!("a valid call: {other}"),
        })
    })?;
    // Also with other numbers of passes, because the plan is made on the device.
    for spread in [
        Distribution::UniformBits,
        Distribution::Sorted,
        Distribution::Bits(3, 9),
        Distribution::Constant,
    ] {
        let keys = spread.keys::<f32>(n, 14);
        stream.upload(input.slice_mut(), &keys)?;
        stream.fill_bytes(output.slice_mut(), 0xee)?;
        stream.fill_bytes(index.slice_mut(), 0xee)?;
        for _ in 0..2 {
            graph.launch(&stream)?;
        }
        let expected = reference(&keys, &options);
        same("index", &stream.to_vec(index.slice())?, &expected)
            .map_err(|f| format!("{spread:?}: {}", text(&f)))?;
        same(
            "keys",
            &stream.to_vec(output.slice())?,
            &by_index(&keys, &expected),
        )?;
    }
    // Stages of a graph cannot be timed; after the error the stream is usable.
    let timed = Sorter::new(&gpu.device, SorterConfig::new().timings(true))?;
    timed.prepare::<f32>(gpu.algorithm, n as u64)?;
    let captured = stream.capture(|stream| {
        let result = timed.sort(
            stream,
            Request::keys(input.slice(), output.slice_mut()),
            scratch.slice_mut(),
            &options,
        );
        result.map_err(|error| {
            if let Error::Gpu(error) = error {
                error
            } else {
                panic!("{error}")
            }
        })
    });
    expect_error!(captured, gpu::Error::Capturing { .. });
    stream.synchronize()?;
    Ok(())
}

pub fn same_bits_twice(gpu: &Gpu) -> Outcome {
    let (stream, n, options) = (
        gpu.stream()?,
        unless_quick(1 << 20, 9_000),
        gpu.options().bits(4..29),
    );
    let keys = stream.from_slice(&Distribution::UniformBits.keys::<u64>(n, 16))?;
    let mut first = None;
    for _ in 0..unless_quick(10, 2) {
        let (mut output, mut index) = (stream.alloc::<u64>(n)?, stream.alloc::<u32>(n)?);
        let mut scratch = Scratch::new::<u64>(&stream, gpu.algorithm, n, Payload::Index, false)?;
        let request = Request::index(keys.slice(), index.slice_mut()).keys_out(output.slice_mut());
        gpu.sorter
            .sort(&stream, request, scratch.slice_mut(), &options)?;
        let got = (
            stream.to_vec(output.slice())?,
            stream.to_vec(index.slice())?,
        );
        let (keys, places) = first.get_or_insert_with(|| got.clone());
        same("keys", &got.0, keys)?;
        same("index", &got.1, places)?;
    }
    Ok(())
}

pub fn large(gpu: &Gpu, n: usize) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let keys: Vec<u32> = (0..n)
        .into_par_iter()
        .map(|i| scrambled(i) as u32)
        .collect();
    rig.check(
        &keys,
        &gpu.options(),
        &[Form::Keys, Form::Pairs32, Form::Index],
    )?;
    let keys: Vec<f64> = (0..n / 4)
        .into_par_iter()
        .map(|i| f64::from_bits(scrambled(i)))
        .collect();
    rig.check(
        &keys,
        &gpu.options().descending(),
        &[Form::Pairs32, Form::Pairs64InPlace],
    )
}

/// Sorts pairs and keys alone for each count on the device, including counts above the number of
/// keys. The rest of each output must be unchanged.
pub fn check_counted<K: TestKey>(
    gpu: &Gpu,
    keys: &[K],
    options: &SortOptions,
    counts: &[usize],
) -> Outcome {
    let (stream, most) = (gpu.stream()?, keys.len());
    let values: Vec<u32> = (0..most as u32).collect();
    let (keys_in, values_in) = (
        Guarded::new(&stream, keys)?,
        Guarded::new(&stream, &values)?,
    );
    let mut scratch = Scratch::new::<K>(&stream, gpu.algorithm, most, Payload::U32, false)?;
    for &n in counts {
        let count = stream.from_slice(&[n as u64])?;
        let (mut keys_out, mut values_out) = (
            Guarded::new(&stream, keys)?,
            Guarded::new(&stream, &values)?,
        );
        gpu.sorter.sort(
            &stream,
            Request::keys(keys_in.slice(), keys_out.slice_mut())
                .values(values_in.slice(), values_out.slice_mut())
                .count(count.slice()),
            scratch.slice_mut(),
            options,
        )?;
        let n = n.min(most);
        let index = reference(&keys[..n], options);
        let sorted = [&by_index(keys, &index)[..], &keys[n..]].concat();
        let moved = [&index[..], &values[n..]].concat();
        let what = |of: &str| format!("{of}, {n} of {most} keys");
        same(&what("keys"), &keys_out.read(&stream, "keys_out")?, &sorted)?;
        same(
            &what("values"),
            &values_out.read(&stream, "values_out")?,
            &moved,
        )?;
        let mut keys_out = Guarded::new(&stream, keys)?;
        gpu.sorter.sort(
            &stream,
            Request::keys(keys_in.slice(), keys_out.slice_mut()).count(count.slice()),
            scratch.slice_mut(),
            options,
        )?;
        same(
            &what("keys alone"),
            &keys_out.read(&stream, "output")?,
            &sorted,
        )?;
        scratch.check(&stream)?;
        if gpu.sorter.report(&stream, scratch.slice())?.n != n as u64 {
            return Err(format!("the report does not say {n} keys").into());
        }
    }
    Ok(())
}

/// Checks keys that are too many for a reference sort: they must be in order, with the same sums
/// over two hashes of the keys.
fn many_keys(gpu: &Gpu, n: usize) -> Outcome {
    let stream = gpu.stream()?;
    let keys: Vec<u32> = (0..n)
        .into_par_iter()
        .map(|i| scrambled(i) as u32)
        .collect();
    let sums = |keys: &[u32]| -> (u64, u64) {
        let hash = |&key: &u32| {
            (
                scrambled(key as usize),
                scrambled(!key as usize).rotate_left(17),
            )
        };
        let add = |a: (u64, u64), b: (u64, u64)| (a.0.wrapping_add(b.0), a.1.wrapping_add(b.1));
        keys.par_iter().map(hash).reduce(|| (0, 0), add)
    };
    let input = stream.from_slice(&keys)?;
    let mut output = stream.alloc::<u32>(n)?;
    stream.fill_bytes(output.slice_mut(), 0xee)?;
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::None, false)?;
    gpu.sorter.sort(
        &stream,
        Request::keys(input.slice(), output.slice_mut()),
        scratch.slice_mut(),
        &gpu.options(),
    )?;
    let sorted = stream.to_vec(output.slice())?;
    scratch.check(&stream)?;
    if let Some(i) = sorted
        .par_windows(2)
        .position_first(|pair| pair[0] > pair[1])
    {
        return Err(format!(
            "{n} keys: {:#x} at {i} is before {:#x}",
            sorted[i],
            sorted[i + 1]
        )
        .into());
    }
    if sums(&sorted) != sums(&keys) {
        return Err(format!("{n} keys: in order, but not those of the input").into());
    }
    Ok(())
}

pub fn published(gpu: &Gpu, file: &data::KeyFile, path: &std::path::Path) -> Outcome {
    data::with_keys!(file.dtype.as_str(), path, |keys| {
        let stream = gpu.stream()?;
        let input = stream.from_slice(&keys)?;
        let (mut output, mut index) = (stream.from_slice(&keys)?, stream.alloc::<u32>(keys.len())?);
        let places: Vec<u64> = (0..keys.len() as u64).collect();
        let mut values = stream.from_slice(&places)?;
        let (options, n) = (gpu.options(), keys.len());
        if n != file.n {
            return Err(format!("{n} keys, not {}", file.n).into());
        }
        let bytes = |payload| scratch_for(gpu, &keys, payload);
        let mut scratch = stream.alloc::<u8>(bytes(Payload::Index)?.max(bytes(Payload::U64)?))?;
        gpu.sorter.sort(
            &stream,
            Request::index(input.slice(), index.slice_mut()),
            scratch.slice_mut(),
            &options,
        )?;
        expect_hash(
            "argsort",
            &data::sha256(&stream.to_vec(index.slice())?),
            &file.argsort_u32_sha256,
        )?;
        let (k, v) = (output.slice_mut(), values.slice_mut());
        gpu.sorter.sort(
            &stream,
            Request::in_place(k).values_in_place(v),
            scratch.slice_mut(),
            &options,
        )?;
        expect_hash(
            "keys",
            &data::sha256(&stream.to_vec(output.slice())?),
            &file.sorted_sha256,
        )?;
        let values: Vec<u32> = stream
            .to_vec(values.slice())?
            .into_iter()
            .map(|value| value as u32)
            .collect();
        expect_hash("values", &data::sha256(&values), &file.argsort_u32_sha256)
    })
}

pub fn scratch_for<K: TestKey>(gpu: &Gpu, keys: &[K], payload: Payload) -> Result<usize, Failed> {
    Ok(Sorter::scratch_bytes_for::<K>(gpu.algorithm, keys.len() as u64, payload)? as usize)
}

pub fn expect_hash(what: &str, got: &str, expected: &str) -> Outcome {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: {got}, not {expected}").into())
    }
}
