//! The file of `radsweep calibrate`: `radsweep/sort-DEVICE.txt` in the user's configuration folder.

use super::backend::Device;
use crate::Result;
use crate::terminal::note;
use etcetera::BaseStrategy;
use radsweep::sort::cuda::Calibration;
use std::path::PathBuf;

/// Returns the path of this device's calibration.
///
/// # Errors
///
/// The user has no configuration folder.
pub fn path(device: &Device) -> Result<PathBuf> {
    let folders = etcetera::choose_base_strategy()
        .map_err(|error| format!("no configuration folder: {error}"))?;
    Ok(folders
        .config_dir()
        .join("radsweep")
        .join(file_name(&device.info().name)))
}

fn file_name(device: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    format!("sort-{}.txt", device.chars().map(plain).collect::<String>())
}

/// Loads the calibration of this device, or else the built-in table. A file that cannot be used
/// causes a note.
#[must_use]
pub fn load(device: &Device) -> Calibration {
    let Ok(path) = path(device) else {
        return Calibration::default();
    };
    Calibration::load(&path, device.info()).unwrap_or_else(|error| {
        if !error.is_missing() {
            note(&format!(
                "ignoring the sort calibration {}: {error}; `radsweep calibrate` makes a new one",
                path.display()
            ));
        }
        Calibration::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_names_its_file() {
        assert_eq!(file_name("NVIDIA H200"), "sort-nvidia-h200.txt");
        assert_eq!(file_name("a/../b"), "sort-a----b.txt");
    }
}
