//! Tests of Onesweep on a GPU with the hint that the input is nearly sorted: the common trials,
//! whose inputs mostly are not, and nearly sorted inputs of many kinds, with a check of the path
//! that sorted them.

use crate::common::{Distribution, TestKey, by_index};
use crate::gpu_rig::{Form, Gpu, Outcome, Rig, Scratch, quick, reference, text, unless_quick};
use crate::suite::Suite;
use crate::{each_type, gpu_rig};
use gpu::{Buffer, Stream};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, Error, SortOptions, SortReport};
use libtest_mimic::Failed;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "nearly sorted: inputs of many kinds", kinds);
    each_type!(suite, "nearly sorted: sizes around windows", sizes);
    each_type!(suite, "nearly sorted: the halo's width", displacements);
    each_type!(suite, "nearly sorted: bit windows", bit_windows);
    each_type!(suite, "nearly sorted: 64-bit offsets", large_offsets);
    suite.add("nearly sorted: zeros of both signs", zeros);
    suite.add("nearly sorted: sorts that ignore the hint", not_taken);
    suite.add("nearly sorted: stages", stages);
    each_type!(suite, "nearly sorted: attempts in vain", attempts_in_vain);
    suite.add("nearly sorted: attempts become rare", rare_attempts);
    suite.add("nearly sorted: several streams", several_streams);
    suite.add("nearly sorted: millions", millions);
}

/// Whether a kind of input must be sorted on the path for nearly sorted input.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Path {
    /// On that path, with no elements taken out.
    InOrder,
    /// On that path, with some elements taken out.
    Adaptive,
    /// On another path.
    Fallback,
    Either,
}

/// Sorts pairs and returns the report.
fn report<K: TestKey>(gpu: &Gpu, keys: &[K], options: &SortOptions) -> Result<SortReport, Failed> {
    let (stream, n) = (gpu.stream()?, keys.len());
    let values: Vec<u32> = (0..n as u32).collect();
    let (ki, vi) = (stream.from_slice(keys)?, stream.from_slice(&values)?);
    let (mut ko, mut vo) = (stream.alloc::<K>(n)?, stream.alloc::<u32>(n)?);
    let mut scratch = Scratch::new::<K>(&stream, options.algorithm, n, Payload::U32, false)?;
    let (to, moved) = (ko.slice_mut(), vo.slice_mut());
    gpu.sorter.sort(
        &stream,
        Request::keys(ki.slice(), to).values(vi.slice(), moved),
        scratch.slice_mut(),
        options,
    )?;
    Ok(gpu.sorter.report(&stream, scratch.slice())?)
}

/// Compares every form in `forms` with the reference, and checks the path.
fn check<K: TestKey>(
    gpu: &Gpu,
    keys: &[K],
    options: &SortOptions,
    forms: &[Form],
    path: Path,
) -> Outcome {
    let stream = gpu.stream()?;
    Rig::new(&gpu.sorter, &stream).check(keys, options, forms)?;
    let report = report(gpu, keys, options)?;
    let right = match path {
        Path::InOrder => report.displaced == Some(0) && report.early_exit,
        Path::Adaptive => report.displaced.is_some_and(|count| count > 0) && !report.early_exit,
        Path::Fallback => report.displaced.is_none(),
        Path::Either => true,
    };
    let adaptive = report.displaced.is_some();
    if !right
        || report.algorithm != "onesweep"
        || report.n != keys.len() as u64
        || adaptive && (report.passes_run, report.largest_bucket) != (0, 0)
    {
        return Err(format!("{path:?} expected, {options:?}: {report:?}").into());
    }
    Ok(())
}

/// Returns keys of the distribution `spread`, sorted by `options` and then arranged by `ranks`.
fn arranged<K: TestKey>(spread: Distribution, ranks: &[usize], options: &SortOptions) -> Vec<K> {
    let keys = spread.keys::<K>(ranks.len(), 31);
    let sorted = by_index(&keys, &reference(&keys, options));
    ranks.iter().map(|&rank| sorted[rank]).collect()
}

/// Returns keys of which no two are equal, arranged by `ranks`.
fn distinct<K: TestKey>(ranks: &[usize], options: &SortOptions) -> Vec<K> {
    let keys: Vec<K> = (0..ranks.len())
        .map(|i| K::from_raw(i as u64 * 101 + 5))
        .collect();
    let sorted = by_index(&keys, &reference(&keys, options));
    ranks.iter().map(|&rank| sorted[rank]).collect()
}

fn in_order(n: usize) -> Vec<usize> {
    (0..n).collect()
}

/// Moves one element from an index to another.
fn moved(mut ranks: Vec<usize>, from: usize, to: usize) -> Vec<usize> {
    let rank = ranks.remove(from);
    ranks.insert(to, rank);
    ranks
}

fn swapped(n: usize, count: usize, max: usize, seed: u64) -> Vec<usize> {
    let (mut ranks, rng) = (in_order(n), &mut SmallRng::seed_from_u64(seed));
    for _ in 0..count {
        let i = rng.random_range(0..n);
        ranks.swap(i, (i + rng.random_range(1..=max)).min(n - 1));
    }
    ranks
}

/// Takes out a share of the elements and inserts them again up to `max` positions away.
fn reinserted(n: usize, share: f64, max: usize, seed: u64) -> Vec<usize> {
    let rng = &mut SmallRng::seed_from_u64(seed);
    let mut places: Vec<(f64, usize)> = (0..n).map(|i| (i as f64, i)).collect();
    for (place, _) in &mut places {
        if rng.random::<f64>() < share {
            *place += rng.random_range(-(max as f64)..max as f64);
        }
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.into_iter().map(|place| place.1).collect()
}

fn kinds<K: TestKey>(gpu: &Gpu) -> Outcome {
    let [core, halo] = Sorter::nearly_sorted_window::<K>();
    let n = 2 * core + 1234;
    let rotated = |by: usize| {
        let mut ranks = in_order(n);
        ranks[core - 700..core + 700].rotate_left(by);
        ranks
    };
    let exchanged = |length: usize| {
        let mut ranks = in_order(n);
        ranks[core - length..core + length].rotate_left(length);
        ranks
    };
    let mut tail = in_order(n);
    let rng = &mut SmallRng::seed_from_u64(5);
    for i in n - 400..n {
        tail.swap(i, rng.random_range(n - 400..n));
    }
    let mut far_tail = in_order(n);
    far_tail.swap(3, n - 3);
    let mut whole = in_order(n);
    whole.rotate_left(100);
    let ranks: [(&str, Vec<usize>, Path); 17] = [
        ("sorted", in_order(n), Path::InOrder),
        ("reverse", (0..n).rev().collect(), Path::Fallback),
        ("one swap", swapped(n, 1, 1, 1), Path::Adaptive),
        ("few swaps", swapped(n, 9, 1000, 2), Path::Adaptive),
        ("1 % swapped", swapped(n, n / 100, 1000, 3), Path::Adaptive),
        ("1 % moved", reinserted(n, 0.01, 1000, 4), Path::Adaptive),
        (
            "3 % moved a little",
            reinserted(n, 0.03, 20, 5),
            Path::Adaptive,
        ),
        ("all moved", reinserted(n, 1.0, 1000, 6), Path::Fallback),
        ("a part rotated by 100", rotated(100), Path::Adaptive),
        ("a part rotated by 400", rotated(400), Path::Adaptive),
        ("all rotated by 100", whole, Path::Fallback),
        ("blocks of 300 exchanged", exchanged(300), Path::Adaptive),
        (
            "blocks beyond the halo exchanged",
            exchanged(halo + 1),
            Path::Fallback,
        ),
        (
            "the last one first",
            moved(in_order(n), n - 1, 0),
            Path::Fallback,
        ),
        (
            "the first one last",
            moved(in_order(n), 0, n - 1),
            Path::Fallback,
        ),
        ("two far ones swapped", far_tail, Path::Fallback),
        ("the tail at random", tail, Path::Adaptive),
    ];
    for (i, (name, ranks, path)) in ranks.into_iter().enumerate() {
        if quick() && i % 3 != K::TYPE as usize % 3 {
            continue;
        }
        let options = &gpu.orders()[i / 3 % 2];
        let forms = unless_quick(Form::ALL, &Form::ALL[i % Form::ALL.len()..][..1]);
        let named = |failed: Failed| format!("{name}: {}", text(&failed));
        check(gpu, &distinct::<K>(&ranks, options), options, forms, path).map_err(named)?;
        // With equal keys, elements are nearer to their sorted positions.
        let path = if path == Path::Fallback {
            Path::Either
        } else {
            path
        };
        let path = if name == "one swap" {
            Path::Either
        } else {
            path
        };
        let ties = arranged::<K>(Distribution::Few(300), &ranks, options);
        check(gpu, &ties, options, forms, path).map_err(named)?;
    }
    check(
        gpu,
        &vec![K::from_unit(0.4); n],
        &gpu.options(),
        &[Form::Pairs32],
        Path::InOrder,
    )?;
    for spread in [
        Distribution::UniformBits,
        Distribution::TwoRuns,
        Distribution::SortedPart,
    ] {
        check(
            gpu,
            &spread.keys::<K>(n, 7),
            &gpu.options(),
            &[Form::Pairs32],
            Path::Fallback,
        )
        .map_err(|failed| format!("{spread:?}: {}", text(&failed)))?;
    }
    Ok(())
}

fn sizes<K: TestKey>(gpu: &Gpu) -> Outcome {
    let [core, halo] = Sorter::nearly_sorted_window::<K>();
    let mut sizes = vec![
        1,
        2,
        3,
        33,
        1000,
        halo - 1,
        halo,
        halo + 1,
        core - halo,
        2 * core + halo,
        3 * core - halo - 1,
    ];
    sizes.extend(
        [1, 2, 3]
            .iter()
            .flat_map(|k| [k * core - 1, k * core, k * core + 1]),
    );
    for (i, n) in sizes.into_iter().enumerate() {
        if quick() && i % 6 != K::TYPE as usize {
            continue;
        }
        let options = &gpu.orders()[i % 2];
        let forms = unless_quick(
            Form::ALL,
            &Form::ALL[i % Form::ALL.len()..][..2.min(Form::ALL.len() - i % Form::ALL.len())],
        );
        let ranks = reinserted(n, 0.01, 900, i as u64);
        let path = if ranks.is_sorted() {
            Path::InOrder
        } else {
            Path::Adaptive
        };
        check(gpu, &distinct::<K>(&ranks, options), options, forms, path)
            .map_err(|failed| format!("{n}: {}", text(&failed)))?;
        check(
            gpu,
            &distinct::<K>(&in_order(n), options),
            options,
            &forms[..1],
            Path::InOrder,
        )?;
    }
    Ok(())
}

/// A displacement by the width of the halo is sorted at every position; one by more is detected and
/// left to Onesweep.
fn displacements<K: TestKey>(gpu: &Gpu) -> Outcome {
    let [core, halo] = Sorter::nearly_sorted_window::<K>();
    let n = 3 * core - 7;
    let options = &gpu.orders()[K::TYPE as usize % 2];
    let forms = &[Form::Pairs32, Form::IndexAndKeys][..unless_quick(2, 1)];
    for (distance, path) in [(halo, Path::Adaptive), (halo + 1, Path::Fallback)] {
        // To the first index of the second core from the left, and to its last from the right.
        for (from, to) in [
            (core - distance, core),
            (2 * core - 1 + distance, 2 * core - 1),
        ] {
            // The element of rank `to` is at index `from`.
            let keys = distinct::<K>(&moved(in_order(n), to, from), options);
            check(gpu, &keys, options, forms, path)
                .map_err(|failed| format!("{from} to {to}: {}", text(&failed)))?;
        }
    }
    for from in unless_quick(
        vec![0, 1, 777, core - halo - 1, core - 1, core + 1, 2 * core],
        vec![777],
    ) {
        for (from, to) in [(from, from + halo), (from + halo, from)] {
            let keys = distinct::<K>(&moved(in_order(n), to, from), options);
            check(gpu, &keys, options, forms, Path::Adaptive)
                .map_err(|failed| format!("{from} to {to}: {}", text(&failed)))?;
        }
    }
    Ok(())
}

fn bit_windows<K: TestKey>(gpu: &Gpu) -> Outcome {
    let n = Sorter::nearly_sorted_window::<K>()[0] + 5000;
    let b = K::BITS;
    for (i, window) in [0..b, 0..0, b / 3..3 * b / 4, 0..12, b - 9..b, 7..8]
        .into_iter()
        .enumerate()
    {
        if quick() && i % 3 != K::TYPE as usize % 3 {
            continue;
        }
        let options = gpu.orders()[i % 2].clone().bits(window);
        let keys = arranged::<K>(
            Distribution::UniformBits,
            &reinserted(n, 0.01, 1000, 8),
            &options,
        );
        let forms = unless_quick(Form::ALL, &[Form::Pairs32, Form::KeysInPlace]);
        let path = if i == 1 {
            Path::InOrder
        } else {
            Path::Adaptive
        };
        check(
            gpu,
            &keys,
            &options,
            forms,
            if i == 5 { Path::Either } else { path },
        )?;
    }
    Ok(())
}

fn large_offsets<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig {
        large: true,
        ..Rig::new(&gpu.large, &stream)
    };
    let n = Sorter::nearly_sorted_window::<K>()[0] + 3000;
    for share in [0.01, 1.0] {
        let keys = distinct::<K>(&reinserted(n, share, 1000, 9), &gpu.options());
        rig.check(
            &keys,
            &gpu.options(),
            &[Form::Pairs32, Form::Pairs64InPlace],
        )?;
    }
    Ok(())
}

fn zeros(gpu: &Gpu) -> Outcome {
    let n = 12_000;
    for (i, options) in gpu.orders().iter().enumerate() {
        let mut keys = arranged::<f32>(
            Distribution::Gaussian,
            &reinserted(n, 0.005, 500, 10),
            options,
        );
        for (i, key) in keys[5_000..7_000].iter_mut().enumerate() {
            *key = if i % 3 == 0 { 0.0 } else { -0.0 };
        }
        let all: Vec<f32> = (0..n)
            .map(|i| if i % 2 == 0 { 0.0 } else { -0.0 })
            .collect();
        check(
            gpu,
            &all,
            options,
            unless_quick(Form::ALL, &Form::ALL[i..=i]),
            Path::InOrder,
        )?;
        // The zeros replace keys of about that size.
        check(
            gpu,
            &keys,
            options,
            unless_quick(Form::ALL, &[Form::Pairs32]),
            Path::Either,
        )?;
    }
    Ok(())
}

fn not_taken(gpu: &Gpu) -> Outcome {
    let (n, options) = (9_000, gpu.options());
    let keys = distinct::<u32>(&reinserted(n, 0.01, 500, 11), &options);
    let mut plain = options.clone();
    plain.nearly_sorted = false;
    check(gpu, &keys, &plain, &[Form::Pairs32], Path::Fallback)?;
    check(
        gpu,
        &keys,
        &plain.clone().nearly_sorted(),
        &[Form::Pairs32],
        Path::Adaptive,
    )?;
    check(
        gpu,
        &keys,
        &options.clone().algorithm(Algorithm::Auto),
        &[Form::Pairs32],
        Path::Adaptive,
    )?;
    // There are too few keys for the hint, unless the configuration lowers the limit.
    let default = Gpu {
        sorter: Sorter::new(&gpu.device, SorterConfig::default())?,
        ..gpu.clone()
    };
    check(&default, &keys, &options, &[Form::Pairs32], Path::Fallback)?;
    if !quick() {
        let enough = 24 << 17; // pairs of u32, of 24 MiB
        for (n, path) in [(enough, Path::InOrder), (enough - 1, Path::Fallback)] {
            let keys: Vec<u32> = (0..n).collect();
            check(&default, &keys, &plain.clone().nearly_sorted(), &[], path)?;
        }
    }
    // The number of keys is read from the device.
    let stream = gpu.stream()?;
    let (count, input) = (stream.from_slice(&[n as u64])?, stream.from_slice(&keys)?);
    let mut output = stream.alloc::<u32>(n)?;
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::None, false)?;
    let (from, to) = (input.slice(), output.slice_mut());
    gpu.sorter.sort(
        &stream,
        Request::keys(from, to).count(count.slice()),
        scratch.slice_mut(),
        &options,
    )?;
    let report = gpu.sorter.report(&stream, scratch.slice())?;
    if report.displaced.is_some() || report.n != n as u64 {
        return Err(format!("counted: {report:?}").into());
    }
    gpu_rig::same(
        "keys",
        &stream.to_vec(output.slice())?,
        &by_index(&keys, &reference(&keys, &options)),
    )
}

/// A sort with the hint takes one launch more than without it.
fn stages(gpu: &Gpu) -> Outcome {
    let config = SorterConfig::new().timings(true).knobs(Knobs {
        adaptive_from: Some(0),
        no_small: true,
        ..Knobs::default()
    });
    let timed = Gpu {
        sorter: Sorter::new(&gpu.device, config)?,
        ..gpu.clone()
    };
    let keys = distinct::<u32>(&in_order(5000), &gpu.options());
    let report = report(&timed, &keys, &gpu.options())?;
    let names: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
    if names[..2] != ["nearly sorted", "histogram"] || report.displaced != Some(0) {
        return Err(format!("{report:?}").into());
    }
    Ok(())
}

/// Returns a sorter that uses the hint for every number of keys, and whose blocks sort several
/// windows each.
fn hinted(gpu: &Gpu) -> Result<Sorter, Failed> {
    let knobs = Knobs {
        adaptive_from: Some(0),
        adaptive_blocks: Some(2),
        no_small: true,
        ..Knobs::default()
    };
    Ok(Sorter::new(&gpu.device, SorterConfig::new().knobs(knobs))?)
}

/// Keys of a kind for each way in which an attempt ends: sorted by windows; in vain, since one key
/// is too far away; since a window has too many to take out; since the sample has many descents.
struct Inputs<K> {
    n: usize,
    /// Unsorted and sorted.
    kinds: [(Vec<K>, Vec<K>); 4],
}

const NEAR: usize = 0;

impl<K: TestKey> Inputs<K> {
    fn new(options: &SortOptions) -> Self {
        let [core, _] = Sorter::nearly_sorted_window::<K>();
        let n = 2 * core + 100;
        let kinds = [
            reinserted(n, 0.01, 500, 13),
            moved(in_order(n), n - 5, 7),
            reinserted(n, 0.1, 20, 14),
            (0..n).rev().collect(),
        ];
        let kinds = kinds.map(|ranks| {
            let keys = distinct::<K>(&ranks, options);
            let sorted = by_index(&keys, &reference(&keys, options));
            (keys, sorted)
        });
        Self { n, kinds }
    }
}

/// Pairs at one address, which one sorter sorts again and again.
struct Again<K: TestKey> {
    stream: Stream,
    /// Input and output.
    keys: [Buffer<K>; 2],
    values: [Buffer<u32>; 2],
    scratch: Scratch,
    in_place: bool,
}

impl<K: TestKey> Again<K> {
    fn new(gpu: &Gpu, n: usize, in_place: bool) -> Result<Self, Failed> {
        let stream = gpu.stream()?;
        Ok(Self {
            keys: [stream.alloc(n)?, stream.alloc(n)?],
            values: [stream.alloc(n)?, stream.alloc(n)?],
            scratch: Scratch::new::<K>(&stream, gpu.algorithm, n, Payload::U32, false)?,
            stream,
            in_place,
        })
    }

    /// Uploads keys of a kind, and values that say where they were. Poisons the scratch memory.
    fn upload(&mut self, inputs: &Inputs<K>, kind: usize) -> Outcome {
        let (stream, keys) = (&self.stream, &inputs.kinds[kind].0);
        let values: Vec<u32> = (0..inputs.n as u32).collect();
        stream.upload(self.keys[0].slice_mut(), keys)?;
        stream.upload(self.values[0].slice_mut(), &values)?;
        Ok(stream.fill_bytes(self.scratch.slice_mut(), 0xc3)?)
    }

    fn sort(&mut self, sorter: &Sorter, options: &SortOptions) -> gpusort::Result<()> {
        let ([keys, to], [values, moved]) = (&mut self.keys, &mut self.values);
        let request = if self.in_place {
            Request::in_place(keys.slice_mut()).values_in_place(values.slice_mut())
        } else {
            Request::keys(keys.slice(), to.slice_mut()).values(values.slice(), moved.slice_mut())
        };
        sorter.sort(&self.stream, request, self.scratch.slice_mut(), options)
    }

    /// Checks the result of the last sort. Returns whether windows sorted it.
    fn check(&self, sorter: &Sorter, inputs: &Inputs<K>, kind: usize) -> Result<bool, Failed> {
        let which = usize::from(!self.in_place);
        let (keys, sorted) = &inputs.kinds[kind];
        let values = self.stream.to_vec(self.values[which].slice())?;
        let to = self.stream.to_vec(self.keys[which].slice())?;
        gpu_rig::same("keys", &to, sorted)?;
        gpu_rig::same("values", &by_index(keys, &values), sorted)?;
        let report = sorter.report(&self.stream, self.scratch.slice())?;
        Ok(report.displaced.is_some())
    }
}

/// After attempts in vain the sorts of that input make none, once and then three times; after a
/// success each makes one. Captured sorts do the same, and their graph outlives the sorter.
fn attempts_in_vain<K: TestKey>(gpu: &Gpu) -> Outcome {
    let (options, (made, not)) = (gpu.options(), (true, false));
    let inputs = Inputs::<K>::new(&options);
    // An attempt in vain and none end alike; the sorts after them tell.
    #[rustfmt::skip]
    let sorts = [
        (NEAR, made), (1, made), (NEAR, not), (NEAR, made), (NEAR, made),
        (2, made), (1, not), (3, made), (NEAR, not), (3, not), (NEAR, not), (NEAR, made),
        (3, made), (NEAR, not), (NEAR, made),
    ];
    for (captured, in_place) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut sorter = hinted(gpu)?;
        let mut again = Again::new(gpu, inputs.n, in_place)?;
        let stream = again.stream.clone();
        let mut graph = None;
        if captured {
            graph = Some(stream.capture(|_| {
                let queued = again.sort(&sorter, &options);
                queued.map_err(|error| match error {
                    Error::Gpu(error) => error,
                    other => panic!("a valid call: {other}"),
                })
            })?);
            sorter = hinted(gpu)?;
        }
        for (i, &(kind, attempt)) in sorts.iter().enumerate() {
            again.upload(&inputs, kind)?;
            match &graph {
                Some(graph) => graph.launch(&stream)?,
                None => again.sort(&sorter, &options)?,
            }
            let by_windows = again.check(&sorter, &inputs, kind)?;
            if by_windows != (attempt && kind == NEAR) {
                return Err(format!("sort {i}, captured: {captured}, in place: {in_place}").into());
            }
        }
    }
    Ok(())
}

/// Attempts become as rare as one in 64 sorts, and no rarer.
fn rare_attempts(gpu: &Gpu) -> Outcome {
    let options = gpu.options();
    let inputs = Inputs::<u32>::new(&options);
    let (sorter, mut again) = (hinted(gpu)?, Again::new(gpu, inputs.n, false)?);
    let lengths = unless_quick(&[1, 3, 7, 15, 31, 63, 63, 63][..], &[1, 3, 7][..]);
    let (last, before) = lengths.split_last().expect("some");
    again.upload(&inputs, 1)?;
    for _ in 0..=before.iter().map(|length| 1 + length).sum() {
        again.sort(&sorter, &options)?;
    }
    again.check(&sorter, &inputs, 1)?;
    again.upload(&inputs, NEAR)?;
    for i in 0..=*last {
        again.sort(&sorter, &options)?;
        if again.check(&sorter, &inputs, NEAR)? != (i == *last) {
            return Err(format!("sort {i} after the last attempt in vain").into());
        }
    }
    Ok(())
}

/// Sorts of one input on several streams at a time tell each other of their attempts: each may be
/// made or not, and no block waits for one that has ended.
fn several_streams(gpu: &Gpu) -> Outcome {
    let options = gpu.options();
    let inputs = Inputs::<u32>::new(&options);
    let (sorter, stream, n) = (hinted(gpu)?, gpu.stream()?, inputs.n);
    // More than the memories of a sorter, so that some share one.
    let others: Vec<Stream> = (0..17).map(|_| gpu.stream()).collect::<Result<_, _>>()?;
    let mut input = stream.alloc::<u32>(n)?;
    for round in 0..unless_quick(40, 4) {
        let kind = [1, NEAR, 2, NEAR, 3, NEAR][round % 6];
        let (keys, sorted) = &inputs.kinds[kind];
        stream.upload(input.slice_mut(), keys)?;
        stream.synchronize()?;
        let sorts = |stream: &Stream| -> Outcome {
            let mut output = stream.alloc_zeroed::<u32>(n)?;
            let mut scratch = Scratch::new::<u32>(stream, gpu.algorithm, n, Payload::None, false)?;
            for _ in 0..unless_quick(4, 2) {
                let request = Request::keys(input.slice(), output.slice_mut());
                sorter.sort(stream, request, scratch.slice_mut(), &options)?;
            }
            gpu_rig::same("keys", &stream.to_vec(output.slice())?, sorted)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = others
                .iter()
                .map(|other| scope.spawn(|| sorts(other)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic"))
        })
        .map_err(|failed| format!("round {round}: {}", text(&failed)))?;
    }
    Ok(())
}

/// There are more windows than threads in the block that verifies them.
fn millions(gpu: &Gpu) -> Outcome {
    let n = unless_quick(16_000_000, 40_000);
    let options = &gpu.options();
    let ranks = reinserted(n, 0.01, 1000, 12);
    let forms = unless_quick(
        &[Form::Pairs32, Form::Pairs32InPlace, Form::Index][..],
        &[Form::Pairs32InPlace][..],
    );
    check(
        gpu,
        &distinct::<u32>(&ranks, options),
        options,
        forms,
        Path::Adaptive,
    )?;
    for (from, to) in [(n - 9, 5), (5, n - 9), (n / 2, n / 2 + 12_000)] {
        let keys = distinct::<u32>(&moved(ranks.clone(), from, to), options);
        check(gpu, &keys, options, &[Form::Pairs32], Path::Fallback)?;
    }
    check(
        gpu,
        &distinct::<u64>(&ranks, options),
        options,
        &forms[..1],
        Path::Adaptive,
    )
}
