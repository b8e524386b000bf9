//! The device layer on a software driver. Without one these tests do nothing, unless
//! `RADSWEEP_WGPU` is set.

use wgpu_device::{Adapters, BufferUsages, Device, Error, Stages, adapters, wgpu};

/// Opens the software driver.
fn software() -> Option<Device> {
    match Device::new(Adapters::Software) {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("RADSWEEP_WGPU").is_some() => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: {error}");
            None
        }
    }
}

#[test]
fn a_software_driver_is_used_only_if_asked_for() {
    let Some(device) = software() else { return };
    assert!(device.is_software());
    let all = adapters();
    assert!(
        all.iter()
            .any(|one| one.is_software && one.name == device.name())
    );
    let only_software = all.iter().all(|one| one.is_software);
    match Device::new(Adapters::Real) {
        Ok(real) => assert!(!real.is_software()),
        Err(Error::NoAdapter { looked_for, found }) => {
            assert!(only_software);
            assert_eq!(looked_for, "a GPU");
            assert!(found.contains(device.name()), "{found}");
        }
        Err(error) => panic!("{error}"),
    }
    let any = Device::new(Adapters::Any).expect("at least the software driver");
    assert_eq!(any.is_software(), only_software);
}

#[test]
fn uploads_and_downloads_keep_every_byte() {
    let Some(device) = software() else { return };
    let bytes: Vec<u8> = (0..999_u32).map(|i| (i * 7) as u8).collect();
    let buffer = device
        .upload("bytes", &bytes, BufferUsages::COPY_SRC)
        .expect("memory");
    assert_eq!(buffer.size(), 1000);
    let all: Vec<u8> = device
        .download(&buffer, 0..1000)
        .and_then(|all| all.wait())
        .expect("a copy");
    assert_eq!(all[..999], bytes);
    let mut part = device.download(&buffer, 8..16).expect("a copy");
    let part: Vec<u8> = loop {
        if let Some(part) = part.try_take().expect("a copy") {
            break part;
        }
    };
    assert_eq!(part, bytes[8..16]);
    let none = device
        .upload::<u64>("none", &[], BufferUsages::COPY_SRC)
        .expect("memory");
    let nothing: Vec<u64> = device
        .download(&none, 0..0)
        .and_then(|all| all.wait())
        .expect("a copy");
    assert!(nothing.is_empty());
}

#[test]
fn threads_that_wait_at_once_all_get_their_copies() {
    let Some(device) = software() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let device = &device;
            scope.spawn(move || {
                for i in 0..100 {
                    let number = [thread, i];
                    let buffer = device
                        .upload("number", &number, BufferUsages::COPY_SRC)
                        .expect("memory");
                    let got = device
                        .download(&buffer, 0..8)
                        .and_then(|copy| copy.wait::<u32>());
                    assert_eq!(got.expect("a copy"), number);
                }
            });
        }
    });
}

#[test]
fn wrong_ranges_and_sizes_are_errors_with_their_numbers() {
    let Some(device) = software() else { return };
    let buffer = device
        .buffer("small", 16, BufferUsages::COPY_SRC)
        .expect("memory");
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    for range in [0..20, 2..8, 4..7, 12..8, u64::MAX - 3..u64::MAX] {
        let refused = device.download(&buffer, range.clone()).map(drop);
        assert!(
            matches!(refused, Err(Error::Range { start, end, size: 16, .. })
                if (start..end) == range),
            "{range:?}"
        );
    }
    let (limits, storage) = (device.limits(), BufferUsages::STORAGE);
    let bound = limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size);
    let cases = [
        (BufferUsages::COPY_DST, limits.max_buffer_size),
        (storage, bound),
    ];
    for (usage, allowed) in cases {
        let refused = device.buffer("large", allowed + 1, usage);
        assert!(
            matches!(refused, Err(Error::TooLarge { what: "large", needed, limit, .. })
            if needed == allowed + 1 && limit == allowed)
        );
    }
    // A buffer that cannot be copied from.
    let bound = device.buffer("bound", 16, storage).expect("memory");
    let refused = device.download(&bound, 0..16).map(drop);
    assert!(
        matches!(refused, Err(Error::Failed { call: "finish", .. })),
        "{refused:?}"
    );
    // Errors leave the device usable.
    assert!(device.buffer("small", 16, storage).is_ok());
}

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
    @compute @workgroup_size(64)
    fn double(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&numbers) {
            numbers[id.x] *= 2u;
        }
    }";

#[test]
fn kernels_run_and_their_stages_are_measured() {
    let Some(device) = software() else { return };
    let module = device.module("doubles", DOUBLE).expect("valid WGSL");
    let double = module.kernel(&device, "double").expect("an entry point");
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    let numbers: Vec<u32> = (0..1000).collect();
    let buffer = device.upload("numbers", &numbers, usage).expect("memory");
    let bound = double
        .bind(&device, &[(0, buffer.as_entire_binding())])
        .expect("the resources of the kernel");
    let mut stages = Stages::new(&device, 2).expect("queries");
    let mut encoder = device.encoder("three stages").expect("an encoder");
    for name in ["first", "second", "beyond"] {
        double.launch(&mut stages.pass(&mut encoder, name), &bound, 16);
    }
    let times = stages.submit(&device, encoder).expect("a submission");
    let got: Vec<u32> = device
        .download(&buffer, 0..4000)
        .and_then(|all| all.wait())
        .expect("a copy");
    assert!(
        got.iter()
            .zip(&numbers)
            .all(|(got, number)| *got == 8 * number)
    );
    let times = times.wait().expect("times");
    let names: Vec<_> = times.iter().map(|stage| stage.0).collect();
    let measured = ["first", "second"];
    assert_eq!(
        names,
        if device.has_timestamps() {
            &measured[..]
        } else {
            &[]
        }
    );
    assert!(
        times
            .iter()
            .all(|stage| stage.1 >= 0.0 && stage.1 < 60_000.0),
        "{times:?}"
    );
}

#[test]
fn refused_kernels_are_errors_that_name_the_call() {
    let Some(device) = software() else { return };
    let refused = device.module("wrong", "fn double( {").map(drop);
    assert!(
        matches!(&refused, Err(Error::Failed { adapter, call: "create_shader_module", .. })
        if adapter == device.name())
    );
    let module = device.module("doubles", DOUBLE).expect("valid WGSL");
    let refused = module.kernel(&device, "treble").map(drop);
    assert!(matches!(
        refused,
        Err(Error::Failed {
            call: "create_compute_pipeline",
            ..
        })
    ));
    let double = module.kernel(&device, "double").expect("an entry point");
    let refused = double.bind(&device, &[]).map(drop);
    assert!(matches!(
        refused,
        Err(Error::Failed {
            call: "create_bind_group",
            ..
        })
    ));
}

#[test]
fn a_lost_device_is_an_error_for_every_call() {
    let (Some(own), Some(other)) = (software(), software()) else {
        return;
    };
    let brought = Device::from_parts(other.wgpu().clone(), other.queue().clone());
    for device in [own, brought] {
        let buffer = device
            .upload("numbers", &[1_u32, 2], BufferUsages::COPY_SRC)
            .expect("memory");
        let early = device.download(&buffer, 0..8).expect("a copy");
        assert_eq!(early.wait::<u32>().expect("a copy"), [1, 2]);
        device.wgpu().destroy();
        let calls = [
            device
                .upload("more", &[1_u32], BufferUsages::COPY_SRC)
                .map(drop),
            device
                .download(&buffer, 0..8)
                .and_then(|all| all.wait::<u32>())
                .map(drop),
            device
                .module("doubles", DOUBLE)
                .and_then(|module| module.kernel(&device, "double"))
                .map(drop),
        ];
        for (at, result) in calls.into_iter().enumerate() {
            assert!(
                matches!(result, Err(Error::Lost { .. })),
                "call {at}: {result:?}"
            );
        }
    }
}

#[test]
fn errors_that_a_caller_catches_stay_with_the_caller() {
    let Some(device) = software() else { return };
    let scope = device
        .wgpu()
        .push_error_scope(wgpu::ErrorFilter::Validation);
    let wrong = device.checked("create_buffer", || {
        device.wgpu().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 3,
            usage: BufferUsages::COPY_DST,
            mapped_at_creation: true,
        })
    });
    assert!(matches!(wrong, Err(Error::Failed { .. })));
    // The scope of the caller outlives the call, and has seen nothing of its error.
    drop(scope);
    assert!(device.buffer("small", 4, BufferUsages::COPY_DST).is_ok());
}
