//! Reads `.npy` files of any bytes: the result is an array or an error, never a panic, and no
//! element that is not in the file.

use radsweep_common::npy::{self, Boxes, Keys};
use std::path::PathBuf;
use std::{env, fs, process};

pub fn target(data: &[u8]) {
    let path = file("in");
    fs::write(&path, data).expect("a temporary file");
    match npy::read_boxes(&path) {
        Ok(Boxes::F32(boxes)) => boxes_again::<f32>(bytemuck::cast_slice(&boxes), data),
        Ok(Boxes::F64(boxes)) => boxes_again::<f64>(bytemuck::cast_slice(&boxes), data),
        Err(_) => {}
    }
    if let Ok(keys) = npy::read_keys(&path) {
        assert!(4 * keys.len() <= data.len());
        if let Keys::U32(keys) = &keys {
            again(&[keys.len() as u64], keys, |path| {
                assert_eq!(
                    npy::read_keys(path).expect("what was written"),
                    Keys::U32(keys.clone())
                );
            });
        }
    }
}

/// Checks that boxes have no number that is not in the file, and are read again as written.
fn boxes_again<T: npy::Element>(numbers: &[T], data: &[u8]) {
    assert!(size_of_val(numbers) <= data.len());
    again(&[numbers.len() as u64 / 6, 6], numbers, |path| {
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        match npy::read_boxes(path).expect("what was written") {
            Boxes::F32(read) => assert_eq!(bytemuck::cast_slice::<_, u8>(&read), bytes),
            Boxes::F64(read) => assert_eq!(bytemuck::cast_slice::<_, u8>(&read), bytes),
        }
    });
}

/// Writes and reads an array again.
fn again<T: npy::Element>(shape: &[u64], elements: &[T], check: impl Fn(&PathBuf)) {
    let path = file("out");
    npy::write(&path, shape, elements).expect("a temporary file");
    check(&path);
}

fn file(name: &str) -> PathBuf {
    env::temp_dir().join(format!("radsweep-fuzz-{}-{name}.npy", process::id()))
}

/// Returns valid files to start from.
pub fn seeds() -> Vec<Vec<u8>> {
    let header = |descr: &str, shape: &str, bytes: &[u8]| {
        let order = if shape.contains("2, 3") { "True" } else { "False" };
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{dict:<117}\n").bytes());
        file.extend(bytes);
        file
    };
    vec![
        header("<f4", "(2, 6)", &[0; 48]),
        header("<f8", "(2, 2, 3)", &[3; 96]),
        header("<u4", "(3,)", &[1; 12]),
        header("<f8", "(1,)", &[2; 8]),
        header("<i8", "(0,)", &[]),
    ]
}
