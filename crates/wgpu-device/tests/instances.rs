//! The instances that a process chooses. The choice is of the whole process, so the test is alone
//! in its program.

use wgpu_device::wgpu::{Backends, InstanceDescriptor};
use wgpu_device::{Adapters, Device, Error, adapters, set_instances};

#[test]
fn a_process_chooses_its_graphics_apis() {
    set_instances(|| InstanceDescriptor {
        backends: Backends::empty(),
        ..InstanceDescriptor::new_without_display_handle()
    });
    assert_eq!(adapters(), []);
    let error = Device::new(Adapters::Any).expect_err("no graphics API");
    assert!(
        matches!(&error, Error::NoAdapter { found, .. } if found == "none"),
        "{error}"
    );
}
