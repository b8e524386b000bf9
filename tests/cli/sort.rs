//! Tests of `radsweep sort`.

use crate::*;

/// Sorts in both orders with an index, and compares with the expected keys and indices; equal keys
/// keep their order.
#[track_caller]
fn check<T>(keys: &[T], sorted: &[T], index: &[u32], descending: &[u32])
where
    T: npyz::AutoSerialize + npyz::Deserialize + Copy + PartialEq + std::fmt::Debug,
{
    let folder = Folder::new();
    let path = folder.array("keys.npy", &[keys.len() as u64], keys);
    let (output, perm) = (folder.string("sorted.npy"), folder.string("perm.npy"));
    let args = ["sort", &path, "-o", &output, "--index", &perm, "--json"];
    let record = json(&args);
    assert_eq!(record["n"], keys.len());
    for key in ["algorithm", "backend", "ms", "passes", "early_exit"] {
        assert!(!record[key].is_null(), "{key} in {record}");
    }
    assert_eq!(
        array::<T>(Path::new(&output)),
        (vec![keys.len() as u64], sorted.to_vec())
    );
    assert_eq!(array::<u32>(Path::new(&perm)).1, index);

    json(&[&args[..], &["--descending"]].concat());
    assert_eq!(array::<u32>(Path::new(&perm)).1, descending);
    let expected: Vec<T> = descending.iter().map(|&at| keys[at as usize]).collect();
    assert_eq!(array::<T>(Path::new(&output)).1, expected);

    // Keys without an index are sorted by other code.
    fs::remove_file(&output).expect("removed");
    succeeds(&["sort", &path, "-o", &output]);
    assert_eq!(array::<T>(Path::new(&output)).1, sorted);
}

#[test]
fn keys_of_every_type_with_their_argsort() {
    check(
        &[5_u32, u32::MAX, 0, 5],
        &[0, 5, 5, u32::MAX],
        &[2, 0, 3, 1],
        &[1, 0, 3, 2],
    );
    check(
        &[5_i32, -7, 0, i32::MIN],
        &[i32::MIN, -7, 0, 5],
        &[3, 1, 2, 0],
        &[0, 2, 1, 3],
    );
    check(
        &[1.5_f32, -2.0, f32::INFINITY, 0.25],
        &[-2.0, 0.25, 1.5, f32::INFINITY],
        &[1, 3, 0, 2],
        &[2, 0, 3, 1],
    );
    check(
        &[1_u64 << 40, 7, u64::MAX, 7],
        &[7, 7, 1 << 40, u64::MAX],
        &[1, 3, 0, 2],
        &[2, 0, 1, 3],
    );
    check(
        &[-1_i64, i64::MAX, i64::MIN, 0],
        &[i64::MIN, -1, 0, i64::MAX],
        &[2, 0, 3, 1],
        &[1, 3, 0, 2],
    );
    check(
        &[1e300, -1e300, 1e-300, -0.5],
        &[-1e300, -0.5, 1e-300, 1e300],
        &[1, 3, 2, 0],
        &[0, 2, 3, 1],
    );
}

#[test]
fn no_keys_and_one_key() {
    check::<u32>(&[], &[], &[], &[]);
    check(&[-3.5_f64], &[-3.5], &[0], &[0]);
}

#[test]
fn zeros_keep_their_sign_and_order_and_nan_sorts_to_the_ends() {
    let folder = Folder::new();
    let negative_nan = f32::from_bits(0xffc0_0001);
    let keys = [0.0, -0.0, f32::NAN, negative_nan, -1.0, 0.0];
    let path = folder.array("keys.npy", &[6], &keys);
    let output = folder.string("sorted.npy");
    succeeds(&["sort", &path, "-o", &output]);
    let bits: Vec<u32> = array::<f32>(Path::new(&output))
        .1
        .into_iter()
        .map(f32::to_bits)
        .collect();
    let expected = [negative_nan, -1.0, 0.0, -0.0, 0.0, f32::NAN].map(f32::to_bits);
    assert_eq!(bits, expected);
}

#[test]
fn text_output_has_the_sort_and_a_table_of_times() {
    let folder = Folder::new();
    let printed = succeeds(&[
        "sort",
        &folder.array("keys.npy", &[3], &[3_u32, 1, 2]),
        "--backend",
        "cpu",
    ]);
    assert!(
        printed.starts_with("3 keys of u32, ") && printed.contains(" on cpu"),
        "{printed}"
    );
    assert!(printed.contains("\ntotal "), "{printed}");
}

#[test]
fn files_that_are_not_keys_are_errors() {
    let folder = Folder::new();
    let dict = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    let raw =
        |name: &str, descr: &str, shape: &str| folder.raw(name, 1, &dict(descr, shape), &[0; 8]);
    for (path, part) in [
        (
            raw("short.npy", "'<i2'", "(4,)"),
            "type <i2, expected one of <u4 <i4 <f4 <u8 <i8 <f8",
        ),
        (raw("big.npy", "'>u4'", "(2,)"), "type >u4"),
        (raw("bool.npy", "'|b1'", "(8,)"), "type |b1"),
        (
            raw("struct.npy", "[('key', '<u8')]", "(1,)"),
            "type [('key', '<u8')]",
        ),
        (raw("scalar.npy", "'<u8'", "()"), "shape (), expected (n,)"),
        (
            raw("matrix.npy", "'<u4'", "(2, 1)"),
            "shape (2, 1), expected (n,)",
        ),
        (
            raw("cut.npy", "'<u4'", "(3,)"),
            "has 8 bytes of data, but its shape (3,) of <u4 takes 12",
        ),
    ] {
        refuses_naming(1, &["sort", &path], &[part]);
    }
}

#[test]
fn text_is_not_written() {
    let folder = Folder::new();
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for option in ["-o", "--index"] {
        let args = ["sort", &keys, option, &folder.string("sorted.csv")];
        refuses_naming(2, &args, &["sorted.csv", "`sort` writes no text"]);
    }
    assert_eq!(folder.names(), ["keys.npy"]);
}

#[test]
fn two_outputs_need_two_files() {
    let folder = Folder::new();
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    let output = folder.string("x.npy");
    refuses_naming(
        2,
        &["sort", &keys, "-o", &output, "--index", &output],
        &["same file"],
    );
}
