//! Tests on published key arrays with known results: those in `fixtures`, and all of the folder
//! that `RADSWEEP_DATA` names.

mod data;

use data::{KeyFile, sha256};
use gpusort::{SortOptions, cpu};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;

fn main() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut trials = trials("fixture", &fixtures, |file| {
        fixtures.join(&file.file).exists()
    });
    match data::folder() {
        Some(folder) => trials.extend(self::trials("data", &folder, |_| true)),
        None => {
            let name = format!("data: {}", data::NO_FOLDER);
            trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trials(kind: &str, folder: &Path, wanted: impl Fn(&KeyFile) -> bool) -> Vec<Trial> {
    let files = match data::key_files(folder) {
        Ok(files) => files,
        Err(error) => {
            return vec![Trial::test(format!("{kind}: list of files"), || {
                Err(error.into())
            })];
        }
    };
    let trial = |file: KeyFile| {
        let path = folder.join(&file.file);
        Trial::test(format!("{kind}: {}", file.file), move || {
            check(&file, &path)
        })
    };
    files
        .into_iter()
        .filter(|file| wanted(file))
        .map(trial)
        .collect()
}

fn check(file: &KeyFile, path: &Path) -> Result<(), Failed> {
    data::with_keys!(file.dtype.as_str(), path, |keys| {
        if keys.len() != file.n {
            return Err(format!("{} keys, not {}", keys.len(), file.n).into());
        }
        let mut index = vec![0_u32; keys.len()];
        cpu::sort_index(&keys, &mut index, &SortOptions::new())?;
        same("argsort", &sha256(&index), &file.argsort_u32_sha256)?;
        let (mut pair_keys, mut values) =
            (keys.clone(), (0..keys.len() as u64).collect::<Vec<_>>());
        cpu::sort_pairs(&mut pair_keys, &mut values, &SortOptions::new())?;
        same("keys of pairs", &sha256(&pair_keys), &file.sorted_sha256)?;
        let values: Vec<u32> = values.into_iter().map(|value| value as u32).collect();
        same(
            "values of pairs",
            &sha256(&values),
            &file.argsort_u32_sha256,
        )?;
        let mut sorted = keys;
        cpu::sort_keys(&mut sorted, &SortOptions::new())?;
        same("keys", &sha256(&sorted), &file.sorted_sha256)
    })
}

fn same(what: &str, got: &str, expected: &str) -> Result<(), Failed> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: {got}, not {expected}").into())
    }
}
